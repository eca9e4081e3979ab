"""The ids of violations that no spec has a rule for: what is checked of a call, a description or a model as such."""

from __future__ import annotations

CHECKS = {
    "absent": "what the operator needs is there: an input, an output, a value",
    "array": "an input is an array, or shares memory that is one's; an output is an array of NumPy",
    "attribute": "the operator has an attribute of that name",
    "byte_order": "elements are in the byte order of this machine",
    "data_type": "an array has the data type that is described, or that follows from the others",
    "feature_level": "the operator exists at the feature level",
    "field_type": "a value is of its field's type, and within what that holds",
    "input_count": "there are as many inputs as are asked for",
    "missing_input": "each input that the model needs is given",
    "not_computable": "the fields give each value that follows from them",
    "opset": "there is such an operator set, and the operator is in it",
    "output_count": "there are as many outputs as are asked for",
    "outputs_info": "results have the data types and shapes that the caller says",
    "overlap": "an output lies outside the memory of inputs and of other outputs",
    "shape": "an array has the shape that is described, or that follows from the others",
    "symbol": "a size that a model has by name is the same wherever that stands",
    "tensor_desc": "the tensor lies within its buffer, and begins where the description allows it",
    "unknown_input": "the model has an input of that name",
    "version": "the version of the operator has such an argument, or such a value of it",
    "writable": "an output may be written to",
}
