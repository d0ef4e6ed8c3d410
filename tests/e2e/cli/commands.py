"""Agents that are programs."""

from headway import Headway

hw = Headway()
hw.command_agent("sh", ["sh", "-c", "{text}"])
