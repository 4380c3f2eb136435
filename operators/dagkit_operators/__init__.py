"""The operator library: readers, writers, filters, maps and counts.

A name's module is imported on first use: all of them take half a second, in each driver and each worker.
"""

from typing import TYPE_CHECKING, Any

from dagkit.deferred_names import deferred

if TYPE_CHECKING:
    from dagkit_operators.compression.codec import CompressionBroken
    from dagkit_operators.contexts.fixed_bytes import FixedBytesReaderContext
    from dagkit_operators.contexts.line_contexts import LineReaderContext, ReadAheadLineReaderContext
    from dagkit_operators.contexts.reader_context import ReaderContext
    from dagkit_operators.contexts.record_by_record import Entity, RecordByRecordContext
    from dagkit_operators.dataframes.spark_sink import SparkSink
    from dagkit_operators.dataframes.spark_source import SparkSource
    from dagkit_operators.event_time.aggregate_by_time import AggregateByTime, WindowResult
    from dagkit_operators.event_time.event_time import EventTime
    from dagkit_operators.event_time.time_windows import SessionWindows, SlidingWindows, TumblingWindows
    from dagkit_operators.filesystem.snapshot import FileChanged
    from dagkit_operators.finding.match import MatchFiles
    from dagkit_operators.finding.scanner import DirectoryScanner
    from dagkit_operators.finding.splitter import FileSplitterInput
    from dagkit_operators.finding.splitter_base import FileSplitterBase
    from dagkit_operators.finding.splitting import AbstractFileSplitter
    from dagkit_operators.formats.avro import AvroBroken, AvroReader, AvroReaderContext
    from dagkit_operators.formats.csv import CsvContext
    from dagkit_operators.formats.json_lines import JsonLinesContext
    from dagkit_operators.formats.parquet import ParquetBroken, ParquetContext
    from dagkit_operators.formats.readers import CsvReader, JsonLinesReader, ParquetReader
    from dagkit_operators.formats.tabular import ColumnsMismatched
    from dagkit_operators.kafka.messages import KafkaMessage, KafkaRange
    from dagkit_operators.kafka.reader import KafkaReader
    from dagkit_operators.kafka.splitter import KafkaSplitter
    from dagkit_operators.kafka.writer import KafkaWriter
    from dagkit_operators.keyed.aggregate import Aggregate, Mean, MergeAggregates
    from dagkit_operators.keyed.count import CountByKey, SumByKey
    from dagkit_operators.keyed.deduplicate import Deduplicate
    from dagkit_operators.keyed.join import Join, LeftJoin, OuterJoin
    from dagkit_operators.keyed.sample import Sample
    from dagkit_operators.native.compiled import about
    from dagkit_operators.partitioners import StatelessLatencyBasedPartitioner, StatelessThroughputBasedPartitioner
    from dagkit_operators.payloads import (
        Block,
        FileInfo,
        FileMetadata,
        FileSlice,
        Lost,
        QuarantinedFile,
        Record,
        Rejected,
    )
    from dagkit_operators.polling.until import UntilAll, UntilAny, UntilElapsed, UntilQuiet
    from dagkit_operators.polling.watch import Polled, Watch
    from dagkit_operators.queues.acknowledge_files import AcknowledgeFiles
    from dagkit_operators.queues.consumer import QueueRefused
    from dagkit_operators.queues.queue_input import AbstractQueueInput, QueueInput, QueuePaths
    from dagkit_operators.queues.queue_message import QueueMessage
    from dagkit_operators.reading.block_reader import BlockReader
    from dagkit_operators.reading.conversion import LineRejected
    from dagkit_operators.reading.file_slices import FileSliceReader
    from dagkit_operators.reading.read_files import ReadFiles
    from dagkit_operators.reading.readers import FixedLengthReader, LineReader
    from dagkit_operators.reading.record_reader import RecordReader
    from dagkit_operators.reading.slices import FSSliceReader, Slice
    from dagkit_operators.reading.tail import TailFiles
    from dagkit_operators.records.branch import Branch, BranchBy
    from dagkit_operators.records.filter import Filter
    from dagkit_operators.records.items import Items
    from dagkit_operators.records.map import FlatMap, Map
    from dagkit_operators.records.merge import StreamMerger
    from dagkit_operators.records.rejecting import ItemRejected
    from dagkit_operators.records.validate import Validate
    from dagkit_operators.sql.queries import SqlQuery, SqlRange
    from dagkit_operators.sql.reader import SqlReader
    from dagkit_operators.sql.splitter import SqlSplitter
    from dagkit_operators.sql.writer import SqlWriter
    from dagkit_operators.tables.delta import DeltaWriter
    from dagkit_operators.tables.iceberg import IcebergWriter
    from dagkit_operators.values.expressions import Expression, value
    from dagkit_operators.writing.csv_part_writer import CsvPartWriter
    from dagkit_operators.writing.file_merger import FileMerger, MergedFile
    from dagkit_operators.writing.file_output import FileOutput
    from dagkit_operators.writing.parquet_part_writer import ParquetPartWriter
    from dagkit_operators.writing.part_writer import PartWriter
    from dagkit_operators.writing.record_writer import RecordWriter
    from dagkit_operators.writing.rolled import FinishedPart
    from dagkit_operators.writing.slice_writer import FSSliceWriter

__all__ = [
    "AbstractFileSplitter",
    "AbstractQueueInput",
    "AcknowledgeFiles",
    "Aggregate",
    "AggregateByTime",
    "AvroBroken",
    "AvroReader",
    "AvroReaderContext",
    "Block",
    "BlockReader",
    "Branch",
    "BranchBy",
    "ColumnsMismatched",
    "CompressionBroken",
    "CountByKey",
    "CsvContext",
    "CsvPartWriter",
    "CsvReader",
    "Deduplicate",
    "DeltaWriter",
    "DirectoryScanner",
    "Entity",
    "EventTime",
    "Expression",
    "FSSliceReader",
    "FSSliceWriter",
    "FileChanged",
    "FileInfo",
    "FileMerger",
    "FileMetadata",
    "FileOutput",
    "FileSlice",
    "FileSliceReader",
    "FileSplitterBase",
    "FileSplitterInput",
    "Filter",
    "FinishedPart",
    "FixedBytesReaderContext",
    "FixedLengthReader",
    "FlatMap",
    "IcebergWriter",
    "ItemRejected",
    "Items",
    "Join",
    "JsonLinesContext",
    "JsonLinesReader",
    "KafkaMessage",
    "KafkaRange",
    "KafkaReader",
    "KafkaSplitter",
    "KafkaWriter",
    "LeftJoin",
    "LineReader",
    "LineReaderContext",
    "LineRejected",
    "Lost",
    "Map",
    "MatchFiles",
    "Mean",
    "MergeAggregates",
    "MergedFile",
    "OuterJoin",
    "ParquetBroken",
    "ParquetContext",
    "ParquetPartWriter",
    "ParquetReader",
    "PartWriter",
    "Polled",
    "QuarantinedFile",
    "QueueInput",
    "QueueMessage",
    "QueuePaths",
    "QueueRefused",
    "ReadAheadLineReaderContext",
    "ReadFiles",
    "ReaderContext",
    "Record",
    "RecordByRecordContext",
    "RecordReader",
    "RecordWriter",
    "Rejected",
    "Sample",
    "SessionWindows",
    "Slice",
    "SlidingWindows",
    "SparkSink",
    "SparkSource",
    "SqlQuery",
    "SqlRange",
    "SqlReader",
    "SqlSplitter",
    "SqlWriter",
    "StatelessLatencyBasedPartitioner",
    "StatelessThroughputBasedPartitioner",
    "StreamMerger",
    "SumByKey",
    "TailFiles",
    "TumblingWindows",
    "UntilAll",
    "UntilAny",
    "UntilElapsed",
    "UntilQuiet",
    "Validate",
    "Watch",
    "WindowResult",
    "about",
    "value",
]

_HOMES = {
    "AbstractFileSplitter": "finding.splitting",
    "AbstractQueueInput": "queues.queue_input",
    "AcknowledgeFiles": "queues.acknowledge_files",
    "Aggregate": "keyed.aggregate",
    "AggregateByTime": "event_time.aggregate_by_time",
    "AvroBroken": "formats.avro",
    "AvroReader": "formats.avro",
    "AvroReaderContext": "formats.avro",
    "Block": "payloads",
    "BlockReader": "reading.block_reader",
    "Branch": "records.branch",
    "BranchBy": "records.branch",
    "ColumnsMismatched": "formats.tabular",
    "CompressionBroken": "compression.codec",
    "CountByKey": "keyed.count",
    "CsvContext": "formats.csv",
    "CsvPartWriter": "writing.csv_part_writer",
    "CsvReader": "formats.readers",
    "Deduplicate": "keyed.deduplicate",
    "DeltaWriter": "tables.delta",
    "DirectoryScanner": "finding.scanner",
    "Entity": "contexts.record_by_record",
    "EventTime": "event_time.event_time",
    "Expression": "values.expressions",
    "FSSliceReader": "reading.slices",
    "FSSliceWriter": "writing.slice_writer",
    "FileChanged": "filesystem.snapshot",
    "FileInfo": "payloads",
    "FileMerger": "writing.file_merger",
    "FileMetadata": "payloads",
    "FileOutput": "writing.file_output",
    "FileSlice": "payloads",
    "FileSliceReader": "reading.file_slices",
    "FileSplitterBase": "finding.splitter_base",
    "FileSplitterInput": "finding.splitter",
    "Filter": "records.filter",
    "FinishedPart": "writing.rolled",
    "FixedBytesReaderContext": "contexts.fixed_bytes",
    "FixedLengthReader": "reading.readers",
    "FlatMap": "records.map",
    "IcebergWriter": "tables.iceberg",
    "ItemRejected": "records.rejecting",
    "Items": "records.items",
    "Join": "keyed.join",
    "JsonLinesContext": "formats.json_lines",
    "JsonLinesReader": "formats.readers",
    "KafkaMessage": "kafka.messages",
    "KafkaRange": "kafka.messages",
    "KafkaReader": "kafka.reader",
    "KafkaSplitter": "kafka.splitter",
    "KafkaWriter": "kafka.writer",
    "LeftJoin": "keyed.join",
    "LineReader": "reading.readers",
    "LineReaderContext": "contexts.line_contexts",
    "LineRejected": "reading.conversion",
    "Lost": "payloads",
    "Map": "records.map",
    "MatchFiles": "finding.match",
    "Mean": "keyed.aggregate",
    "MergeAggregates": "keyed.aggregate",
    "MergedFile": "writing.file_merger",
    "OuterJoin": "keyed.join",
    "ParquetBroken": "formats.parquet",
    "ParquetContext": "formats.parquet",
    "ParquetPartWriter": "writing.parquet_part_writer",
    "ParquetReader": "formats.readers",
    "PartWriter": "writing.part_writer",
    "Polled": "polling.watch",
    "QuarantinedFile": "payloads",
    "QueueInput": "queues.queue_input",
    "QueueMessage": "queues.queue_message",
    "QueuePaths": "queues.queue_input",
    "QueueRefused": "queues.consumer",
    "ReadAheadLineReaderContext": "contexts.line_contexts",
    "ReadFiles": "reading.read_files",
    "ReaderContext": "contexts.reader_context",
    "Record": "payloads",
    "RecordByRecordContext": "contexts.record_by_record",
    "RecordReader": "reading.record_reader",
    "RecordWriter": "writing.record_writer",
    "Rejected": "payloads",
    "Sample": "keyed.sample",
    "SessionWindows": "event_time.time_windows",
    "Slice": "reading.slices",
    "SlidingWindows": "event_time.time_windows",
    "SparkSink": "dataframes.spark_sink",
    "SparkSource": "dataframes.spark_source",
    "SqlQuery": "sql.queries",
    "SqlRange": "sql.queries",
    "SqlReader": "sql.reader",
    "SqlSplitter": "sql.splitter",
    "SqlWriter": "sql.writer",
    "StatelessLatencyBasedPartitioner": "partitioners",
    "StatelessThroughputBasedPartitioner": "partitioners",
    "StreamMerger": "records.merge",
    "SumByKey": "keyed.count",
    "TailFiles": "reading.tail",
    "TumblingWindows": "event_time.time_windows",
    "UntilAll": "polling.until",
    "UntilAny": "polling.until",
    "UntilElapsed": "polling.until",
    "UntilQuiet": "polling.until",
    "Validate": "records.validate",
    "Watch": "polling.watch",
    "WindowResult": "event_time.aggregate_by_time",
    "about": "native.compiled",
    "value": "values.expressions",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    return deferred(__name__, _HOMES, name)
