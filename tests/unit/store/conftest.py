"""A store of its own for every test, on both databases."""

from stores import empty as empty
from stores import fresh as fresh
from stores import kind as kind
from stores import store as store
from stores import url as url
