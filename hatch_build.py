"""Compiles the functions of the embedded engine into the wheel where there is a C compiler; searchapp works without.

`COMPILE_KERNELS=no` leaves them out, `COMPILE_KERNELS=yes` makes a build fail that can't compile them.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "searchapp/lucene/native"


class CompilingHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the compiled functions to a wheel; to that of a checkout by putting them beside their source."""

    _made: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; without a result the wheel is one for every platform."""
        wanted = os.environ.get("COMPILE_KERNELS", "")
        if self.target_name != "wheel":
            return
        compiling = _module(Path(self.root) / FOLDER / "compilation.py")
        if wanted == "no":
            if version == "editable":
                compiling.remove(compiling.LIBRARY)
            return
        if version == "editable":
            library = compiling.LIBRARY
        else:
            self._made = tempfile.mkdtemp()
            library = Path(self._made) / compiling.LIBRARY.name
        problem = compiling.compile_library(library)
        if problem:
            self._remove_made()
        if problem and wanted == "yes":
            raise RuntimeError(f"the functions of the embedded engine were not compiled: {problem}")
        if problem:
            self.app.display_warning(f"searchapp works without compiled functions: {problem}")
        elif version != "editable":
            for file in (library, compiling.checksum_of(library)):
                build_data["force_include"][str(file)] = f"{FOLDER}/{file.name}"
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was compiled for the wheel."""
        self._remove_made()

    def _remove_made(self) -> None:
        if self._made is not None:
            shutil.rmtree(self._made)
            self._made = None


def _module(path: Path) -> Any:
    """A module of searchapp without what searchapp imports, which a build does not have."""
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
