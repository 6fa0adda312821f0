"""`python <this folder> FD`: the warm parent of candidates, in any Python that has the DSL.

The package is loaded by its path under a private name, so that it needs nothing installed and leaves the
folder it lies in out of sys.path.
"""

import contextlib
import importlib.util
import sys
from pathlib import Path

if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    sys.path[:] = [p for p in sys.path if Path(p).resolve() != folder]
    spec = importlib.util.spec_from_file_location(
        "llmdsl_runner", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["llmdsl_runner"] = package
    spec.loader.exec_module(package)
    from llmdsl_runner.wire import Closed
    from llmdsl_runner.zygote import serve

    with contextlib.suppress(Closed):  # the judge left: nobody is there to tell
        serve(int(sys.argv[1]))
