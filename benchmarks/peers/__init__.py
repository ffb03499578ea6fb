"""The peers, each in the fastest exact way that its documentation offers.

In and out: as `contestant` says. Connections and contexts are made once, as their users do;
whatever they would remember of a file between two calls is turned off, because each timed call
is to open the file anew. Where a peer has several ways to do a thing, the fastest one that
returns the right rows in the right order is here, and a comment names the runner-up.
"""
