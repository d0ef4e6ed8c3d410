"""`headway demo`: a short story, played on a real in-memory Headway, that shows what it is for.

`cast` says who takes part and `story` what they do. Everything shown comes out of Headway's events
and views, as any program would get them: `record` keeps what was heard, `words` puts it plainly,
`promises` holds it against what Headway promises, `scene` looks at one moment. `picture` and
`summary` draw, `audience` says for whom, `performance` brings all together, and `command` is the
command line.
"""
