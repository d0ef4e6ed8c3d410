"""Frozen values that every room shares: runs, outcomes, settings, events, errors.

Imports nothing of Headway but itself, does no I/O and knows no clock. If a value here were mutable, two rooms
could disagree about the same run.
"""
