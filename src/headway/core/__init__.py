"""The pure heart: every decision of Headway, as plain synchronous code.

Events go in by method calls that carry the time, actions come out as frozen values. No clock, no randomness, no
asyncio, no logging, no I/O: so each rule can be tried in virtual time, thousands of histories a second. Imports
only `model`. If a decision were taken anywhere else, two nodes could decide differently.
"""
