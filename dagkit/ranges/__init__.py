"""Ranges and restrictions: work is claimed and split such that no record is lost and none is read twice.

A `RangeTracker` guards the reading of a range, and a `RestrictionTracker` a function that processes part of an item.
Both grant claims in ascending order, one by one or many at once. Another thread may split both between two claims.
"""

from dagkit.ranges.byte_key import (
    NO_KEYS,
    ByteKeyRange,
    ByteKeyRangeTracker,
    ByteKeyRestrictionTracker,
    GroupedShuffleRangeTracker,
    LexicographicKeyRangeTracker,
    OrderedPositionRangeTracker,
)
from dagkit.ranges.cursor import Position, Run
from dagkit.ranges.offset import OFFSET_INFINITY, OFFSET_UNKNOWN, OffsetRange, OffsetRangeTracker
from dagkit.ranges.progress import Progress
from dagkit.ranges.range_errors import (
    ClaimBackwards,
    ClaimBeforeStart,
    DelayInvalid,
    FractionInvalid,
    PositionOutside,
    PositionUnmeasured,
    ProgressInvalid,
    RangeFault,
    RangeInvalid,
    SplitPointMissing,
    WatermarkInvalid,
    WorkUnclaimed,
)
from dagkit.ranges.restriction import (
    NEXT_LAUNCH,
    Deferred,
    EndEstimator,
    GrowableOffsetRestrictionTracker,
    OffsetRestrictionTracker,
    RestrictionTracker,
    SplitRestriction,
    claimed_runs,
    split_near,
)
from dagkit.ranges.tracker import RangeTracker, Split, SplitPoints
from dagkit.ranges.unsplittable import (
    SequentialRestrictionTracker,
    UnsplittableRangeTracker,
    UnsplittableRestrictionTracker,
)
from dagkit.ranges.watermark import (
    END_OF_TIME,
    BundleFinalizer,
    ManualWatermarkEstimator,
    MonotonicWatermarkEstimator,
    WalltimeWatermarkEstimator,
    WatermarkEstimator,
    aware,
)

__all__ = [
    "END_OF_TIME",
    "NEXT_LAUNCH",
    "NO_KEYS",
    "OFFSET_INFINITY",
    "OFFSET_UNKNOWN",
    "BundleFinalizer",
    "ByteKeyRange",
    "ByteKeyRangeTracker",
    "ByteKeyRestrictionTracker",
    "ClaimBackwards",
    "ClaimBeforeStart",
    "Deferred",
    "DelayInvalid",
    "EndEstimator",
    "FractionInvalid",
    "GroupedShuffleRangeTracker",
    "GrowableOffsetRestrictionTracker",
    "LexicographicKeyRangeTracker",
    "ManualWatermarkEstimator",
    "MonotonicWatermarkEstimator",
    "OffsetRange",
    "OffsetRangeTracker",
    "OffsetRestrictionTracker",
    "OrderedPositionRangeTracker",
    "Position",
    "PositionOutside",
    "PositionUnmeasured",
    "Progress",
    "ProgressInvalid",
    "RangeFault",
    "RangeInvalid",
    "RangeTracker",
    "RestrictionTracker",
    "Run",
    "SequentialRestrictionTracker",
    "Split",
    "SplitPointMissing",
    "SplitPoints",
    "SplitRestriction",
    "UnsplittableRangeTracker",
    "UnsplittableRestrictionTracker",
    "WalltimeWatermarkEstimator",
    "WatermarkEstimator",
    "WatermarkInvalid",
    "WorkUnclaimed",
    "aware",
    "claimed_runs",
    "split_near",
]
