"""How compiled code is made: a chunk and its helpers together, by the passes that they need.

Numba optimises every function and makes machine code of it, and then does both again for each that calls it. Helpers
are called by chunks alone: their code is optimised as part of these only. That, and nothing for what is not used here
(closures, arrays, counted references, variables of several types), leaves half of the time of a first call.
"""

from __future__ import annotations

from typing import Any, ClassVar

from numba import _dynfunc, njit, types, version_info
from numba.core import (
    cgutils,
    compiler,
    compiler_machinery,
    errors,
    lowering,
    typed_passes,
    untyped_passes,
)
from numba.core import ir as numba_ir
from numba.core.codegen import JITCodeLibrary


class _Library(JITCodeLibrary):
    """A chunk's code and that of its helpers, optimised once."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Part(_Library):
    """A helper's code, to become part of a chunk's."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _Typing:
    """Numba's knowledge of types, which remembers those of calls: 0.85 of the time of a first call."""

    known: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any) -> None:
        self.context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self.context, name)

    def resolve_function_type(self, function: Any, args: Any, named: Any) -> Any:
        if not isinstance(function, types.Function) or named:
            return self.context.resolve_function_type(function, args, named)
        call = function, tuple(args)
        if call not in self.known:
            self.known[call] = self.context.resolve_function_type(function, args, named)
        return self.known[call]


@compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _Types(typed_passes.NopythonTypeInference):
    """To the types of all variables."""

    _name = f"{__name__}.types"

    def run_pass(self, state: Any) -> bool:
        state.typingctx = _Typing(state.typingctx)
        return bool(super().run_pass(state))


@compiler_machinery.register_pass(mutates_CFG=False, analysis_only=True)
class _OneType(compiler_machinery.AnalysisPass):
    """Refuses a variable, or results, of several types: all would have one that holds them, such as a float."""

    _name = f"{__name__}.one_type"

    def __init__(self) -> None:  # abstract there
        compiler_machinery.AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            for assign in block.find_insts(numba_ir.Assign):
                target = assign.target
                found, whole = self._type(state, assign.value), state.typemap[target.name]
                if found is not None and types.unliteral(found) != types.unliteral(whole):
                    subject = "a value" if target.is_temp else f"`{target.name}`"
                    text = f"{subject} is {found} here, and {whole} in {state.func_id.func_name}"
                    raise errors.TypingError(text, assign.loc)
        return False

    def _type(self, state: Any, value: Any) -> Any:
        """Of what is assigned; None for what is taken from an iterator or a tuple, which has its own type."""
        if isinstance(value, numba_ir.Arg):
            return state.typemap[f"arg.{value.name}"]
        if isinstance(value, numba_ir.Var):
            return state.typemap[value.name]
        if isinstance(value, numba_ir.Const | numba_ir.Global | numba_ir.FreeVar):
            return state.typingctx.resolve_value_type(value.value)
        if value.op == "cast":  # of what is returned
            return state.typemap[value.value.name]
        if value.op == "build_tuple":
            return types.BaseTuple.from_types([state.typemap[item.name] for item in value.items])
        return getattr(state.calltypes.get(value), "return_type", None)


class _Lower(lowering.Lower):
    """Writes code in which no references are counted: all values are numbers, or addresses."""

    def incref(self, _type: Any, _value: Any) -> None:
        pass

    def decref(self, _type: Any, _value: Any) -> None:
        pass

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        """As Numba's, but for notes for a debugger."""
        return cgutils.alloca_once(self.builder, lltype, name=name)


@compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(typed_passes.NativeLowering):
    """To the code of a chunk."""

    _name = f"{__name__}.chunk_lowering"
    lowering_class = _Lower

    def run_pass(self, state: Any) -> bool:
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(typed_passes.NativeLowering):
    """To the code of a helper, that callers find by a function which has no machine code."""

    _name = f"{__name__}.helper_lowering"
    lowering_class = _Lower

    def run_pass(self, state: Any) -> bool:
        library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library, state.flags.no_compile = library, True
        super().run_pass(state)
        lowered = state["cr"]
        module, name = lowered.fndesc.lookup_module(), lowered.fndesc.qualname
        function = _dynfunc.make_function(module, name, "", 0, lowered.env, (library,))
        state.targetctx.insert_user_function(function, lowered.fndesc, [library])
        state["cr"] = lowered._replace(cfunc=function)
        return True


def _pipeline(lowering_pass: Any) -> dict[str, Any]:
    """The option that makes Numba compile so: of versions whose parts these are; others do it in their own way."""

    class Compiler(compiler.CompilerBase):
        def define_pipelines(self) -> list[Any]:
            passes = compiler_machinery.PassManager("specops")
            for each in (
                untyped_passes.TranslateByteCode,
                untyped_passes.FixupArgs,
                untyped_passes.IRProcessing,
                untyped_passes.DeadBranchPrune,
                _Types,
                _OneType,
                lowering_pass,
                typed_passes.NoPythonBackend,
            ):
                passes.add_pass(each, each.__name__)
            passes.finalize()
            return [passes]

    return {"pipeline_class": Compiler} if version_info.short == (0, 68) else {}


# Called by their addresses or by other compiled code: without entries from Python and C there is less to compile.
_OPTIONS: Any = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
entry = njit(nogil=True, **_pipeline(_Lowering), **_OPTIONS)
# Not told, the option would be that of whichever function calls a helper first.
helper = njit(forceinline=False, **_pipeline(_PartLowering), **_OPTIONS)
# LLVM leaves calls of long helpers where they are. These always become part of their callers: for a short row a call
# takes up to 0.1 of the time.
inlined = njit(forceinline=True, **_pipeline(_PartLowering), **_OPTIONS)
# Called from Python.
launcher = njit(nogil=True, **_pipeline(_Lowering), **_OPTIONS | {"no_cpython_wrapper": False})
# What a thread begins with, which calls it as C does.
starter = njit(**_pipeline(_Lowering), **_OPTIONS | {"no_cfunc_wrapper": False})
