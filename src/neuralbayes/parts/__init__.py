"""Rows of a result computed in parts, by any number of processes, each part a file: what is finished is kept.

Process 0 begins a job in a folder: it writes ``job.json``, which says what the parts are computed from, and in the end
puts them together. The others join it: process r of w computes those of the parts r, r + w, ... that are missing. They
talk by files alone and wait for nobody; process 0 waits for their parts, and computes those that do not come.
"""

from neuralbayes.parts.digests import contents, file_stamp, stamps
from neuralbayes.parts.files import Parts
from neuralbayes.parts.job import announced, begin, join, parts_folder

__all__ = ["Parts", "announced", "begin", "contents", "file_stamp", "join", "parts_folder", "stamps"]
