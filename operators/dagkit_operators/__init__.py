"""The operator library: what applications are mostly made of."""

from dagkit_operators.blocks import Block, FileInfo, Record
from dagkit_operators.contexts import ReaderContext
from dagkit_operators.filter import Filter
from dagkit_operators.reader import BlockReader, FixedLengthReader, LineReader
from dagkit_operators.seen import FileChanged
from dagkit_operators.splitter import DirectoryScanner, FileSplitterInput
from dagkit_operators.writer import RecordWriter

__all__ = [
    "Block",
    "BlockReader",
    "DirectoryScanner",
    "FileChanged",
    "FileInfo",
    "FileSplitterInput",
    "Filter",
    "FixedLengthReader",
    "LineReader",
    "ReaderContext",
    "Record",
    "RecordWriter",
]
