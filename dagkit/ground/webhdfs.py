"""HDFS through WebHDFS: fsspec's client, with the times, the refusals and the exclusive creation that it leaves out."""

import secrets
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from fsspec.implementations.webhdfs import WebHDFile, WebHDFS


class WebHdfs(WebHDFS):  # type: ignore[misc]  # fsspec has no types
    """The filesystem of a NameNode."""

    @staticmethod
    def _process_info(info: dict[str, Any]) -> dict[str, Any]:
        WebHDFS._process_info(info)  # noqa: SLF001 - what this overrides
        info["mtime"] = datetime.fromtimestamp(info["modificationTime"] / 1000, UTC)
        return info

    def modified(self, path: str) -> datetime:
        modified: datetime = self.info(path)["mtime"]
        return modified

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        """Rename a file. Raise FileExistsError if the other name exists, of which HDFS decides alone."""
        answer = self._call("RENAME", method="put", path=path1, destination=path2)
        if not answer.json()["boolean"]:
            raise (FileExistsError if self.exists(path2) else OSError)(f"{path1} was not renamed to {path2}")

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        """Write a file under another name, and rename it: no reader sees a part of it.

        With the mode "create", raise FileExistsError if the file exists: of several writers, one wins.
        """
        # With a dot: listings of a ledger skip it, if a killed writer leaves it.
        beside = f"{path.rpartition('/')[0]}/.{secrets.token_hex(8)}"
        try:
            super().pipe_file(beside, value)
            if mode == "create":
                self.mv(beside, path)
            else:
                self._call("RENAME", method="put", path=beside, destination=path, renameoptions="OVERWRITE")
        except OSError:
            with suppress(OSError):
                self.rm_file(beside)
            raise

    def _call(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super()._call(*arguments, **options)
        except RuntimeError as error:  # any refusal that fsspec does not distinguish
            raise OSError(str(error)) from error

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **options: Any) -> "_File":
        own = {"autocommit": True, "replication": None, "permissions": None, **options}
        return _File(self, path, mode=mode, block_size=block_size or self.blocksize, tempdir=self.tempdir, **own)


class _File(WebHDFile):  # type: ignore[misc]  # as above
    """An open file."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        """Read a range. fsspec would return the message of a DataNode that refuses as the content."""
        start, end = max(start, 0), min(self.size, end)
        if start >= end:
            return b""
        answer = self.fs._call("OPEN", path=self.path, offset=start, length=end - start, redirect=False)  # noqa: SLF001
        if "Location" in answer.headers:
            answer = self.fs.session.get(self.fs._apply_proxy(answer.headers["Location"]))  # noqa: SLF001
            answer.raise_for_status()
        content: bytes = answer.content
        return content
