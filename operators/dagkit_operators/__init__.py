"""The operator library: readers, writers, filters, maps and counts."""

from dagkit_operators.avro import AvroBroken, AvroReader
from dagkit_operators.blocks import Block, FileInfo, Lost, Record, Rejected
from dagkit_operators.compiled import about
from dagkit_operators.compressed import CompressionBroken
from dagkit_operators.contexts import ReaderContext
from dagkit_operators.count import CountByKey, SumByKey
from dagkit_operators.expressions import Expression, value
from dagkit_operators.files import LineRejected, ReadFiles
from dagkit_operators.filter import Filter
from dagkit_operators.items import Items
from dagkit_operators.map import FlatMap, Map
from dagkit_operators.match import MatchFiles
from dagkit_operators.part_writer import PartWriter
from dagkit_operators.partitioners import StatelessLatencyBasedPartitioner, StatelessThroughputBasedPartitioner
from dagkit_operators.reader import BlockReader, FixedLengthReader, LineReader
from dagkit_operators.snapshot import FileChanged
from dagkit_operators.splitter import DirectoryScanner, FileSplitterInput
from dagkit_operators.tail import TailFiles
from dagkit_operators.writer import RecordWriter

__all__ = [
    "AvroBroken",
    "AvroReader",
    "Block",
    "BlockReader",
    "CompressionBroken",
    "CountByKey",
    "DirectoryScanner",
    "Expression",
    "FileChanged",
    "FileInfo",
    "FileSplitterInput",
    "Filter",
    "FixedLengthReader",
    "FlatMap",
    "Items",
    "LineReader",
    "LineRejected",
    "Lost",
    "Map",
    "MatchFiles",
    "PartWriter",
    "ReadFiles",
    "ReaderContext",
    "Record",
    "RecordWriter",
    "Rejected",
    "StatelessLatencyBasedPartitioner",
    "StatelessThroughputBasedPartitioner",
    "SumByKey",
    "TailFiles",
    "about",
    "value",
]
