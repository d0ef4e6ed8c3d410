"""Stopping: `/stop` ends the running turn, `/stopall` everything in the chat.

Both act at once, reach sub-runs too, and answer what they reached. A cancelled turn can tidy up; the
next one starts only when it has really returned.

Output::

    first: tidied up
    /stop: 1 running stopped
    second: cancelled/stopped
    then the next one ran: done
    /stopall: 1 running and 2 waiting stopped
    ['cancelled/stopped', 'cancelled/stopped', 'cancelled/stopped']
    /stop again: nothing to stop
"""
