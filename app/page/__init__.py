"""The page: what people look at, rendered by the service itself.

Tables come first, from the server; charts are drawn beside them by scripts of our own with BokehJS,
which is served from Bokeh's wheel. Python's side of Bokeh is never imported: it would take half a
second and a hundred megabytes to write what a script writes from the numbers of the table.
"""
