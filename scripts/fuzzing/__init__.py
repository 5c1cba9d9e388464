"""The fuzzing of all readers of foreign data: what is fed, who reads it, and the loop.

`tokens`, `seeds`, `writer` and `parquet` make inputs; `texts`, `replies`, `tags` and `tables` hold the readers by area;
`feeding` gives one its input, `loop` all of them.
"""
