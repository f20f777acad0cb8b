"""Commands that are built when they are asked for: to build all of them took half of the time of a small command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, getdoc, signature
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from ringtrue.config import PROJECT_VARIABLE, project

_EXAMPLES = re.compile(r"\n\n(?=Example:)")
"""Before examples; a line ``\\b`` there keeps the parser from breaking them as if they were prose."""


class Commands(Mapping[str, Any]):
    """Name → command, from a table of ``module:attribute``, a function or a group; each is built when it is first taken."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            one = typer.Typer(rich_markup_mode=None, add_completion=False)
            one.callback()(lambda: None)  # a group, though of one command
            found = self.source(name)
            if isinstance(found, typer.Typer):
                for command in found.registered_commands:
                    command.callback = spread(command.callback)  # type: ignore[arg-type]  # every command has a function
                one.add_typer(found, name=name)
            else:
                one.command(name)(spread(found))
            self._built[name] = _in_project(typer.main.get_command(one).commands[name])  # type: ignore[attr-defined]
        return self._built[name]

    def source(self, name: str) -> Any:
        """Return the function or the group behind a command; raises KeyError."""
        module, _, attribute = self._places[name].partition(":")
        return getattr(import_module(f"ringtrue.cli.{module}"), attribute)

    def outline(self, name: str) -> Any:
        """Return a command that only knows what it is for."""
        if name in self._built:
            return self._built[name]
        found = self.source(name)
        text = found.info.help if isinstance(found, typer.Typer) else getdoc(found)
        return TyperCommand(name, help=text, rich_markup_mode=None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places


def spread(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has the fields of a dataclass as options, in place of the parameter that takes the dataclass."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    if not groups:
        return function
    parameters: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))
            continue
        kinds = get_type_hints(groups[name], include_extras=True)
        for field in fields(groups[name]):
            default = Parameter.empty if field.default is MISSING else field.default
            parameters.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=kinds[field.name]))

    @wraps(function)
    def command(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        function(**given)

    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _in_project(command: Any) -> Any:
    """Return a command whose --project, and those of its subcommands, are what is set once for all commands.

    Help says which options may be repeated, and shows each example in its own line. Lists of subcommands show their whole
    first sentences, which would otherwise be cut off after one line.
    """
    command.help = _EXAMPLES.sub("\n\n\b\n", command.help or "")
    for option in command.params:
        if getattr(option, "multiple", False) and "epeatable" not in option.help:
            option.help = f"{option.help.removesuffix('.')}; repeatable."
        # Another command may call a folder --project; the store's is the one that is 'default' unless given.
        if option.name == "project" and option.default == "default":
            option.envvar, option.default, option.show_default = PROJECT_VARIABLE, project, "as configured"
    for inner in getattr(command, "commands", {}).values():
        inner.short_help = re.split(r"(?<=\.)\s", " ".join((inner.help or "").split()))[0]
        _in_project(inner)
    return command


def lazy_group(sections: Mapping[str, Mapping[str, str]]) -> type[TyperGroup]:
    """Return a kind of group whose commands are those of tables, each under its own heading in the help."""

    class LazyGroup(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**{**given, "commands": {}})
            self.commands: Any = Commands({name: place for places in sections.values() for name, place in places.items()})

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            """Write the list of commands, for which none needs to be built."""
            width = max(map(len, self.commands))
            for heading, names in sections.items():
                with formatter.section(heading):
                    texts = (self.commands.outline(name).get_short_help_str(formatter.width - 6 - width) for name in names)
                    # Names of one width, so that the texts of all sections stand below each other.
                    formatter.write_dl([(name.ljust(width), text) for name, text in zip(names, texts, strict=True)])

    return LazyGroup
