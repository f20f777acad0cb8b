#!/bin/sh
# The Python that was there at the install; should it be gone, any other one, which compares words alone.
python=@PYTHON@
[ -x "$python" ] || python=python3
exec "$python" -I -S "${0%/*}/hook/hook.py" "$@"
