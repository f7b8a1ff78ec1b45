from __future__ import annotations

from pathlib import Path

import pytest


class Folders:
    """A home directory with the user's settings file, and a project with its file and a working directory in it."""

    def __init__(self, root: Path) -> None:
        self.home = root / "own"
        self.project = root / "project"
        self.work = self.project / "runs" / "dev"
        self.home.mkdir()
        self.work.mkdir(parents=True)
        self.user_file = self.home / "settings.toml"
        self.project_file = self.project / "searchapp.toml"

    def user(self, text: str, mode: int = 0o600, *, trusting: bool = False) -> None:
        """Write the user's file; with `trusting` it trusts the project."""
        trust = f'trusted = ["{self.project}"]\n' if trusting else ""
        self.user_file.write_text(trust + text)
        self.user_file.chmod(mode)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    return use_as_default(Folders(tmp_path), monkeypatch)


def use_as_default(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """Make the home directory of `folders` the default."""
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: folders.home)
    return folders
