"""A load that was asked for, bounded in requests and seconds: what is sent, and when each token came back."""

from breakeven.driving.client import run
from breakeven.driving.dialect import dialect_of
from breakeven.driving.load import Load
from breakeven.driving.outcome import Chunk, Driven, Request

__all__ = ["Chunk", "Driven", "Load", "Request", "dialect_of", "run"]
