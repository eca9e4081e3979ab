"""The codes of errors, each with what it means."""

from __future__ import annotations

CODES = {
    "E001": "The file is not readable as YAML.",
    "E002": "A key stands twice in one mapping; YAML readers would silently keep the second.",
    "E003": "A part of YAML that specs do without: anchors, aliases, tags, several documents, keys that are no words,"
    " comments behind a text without quotes.",
    "E004": "A plain scalar that YAML 1.1 and YAML 1.2 read differently, as no, 3_0 or 2:30. Quote it.",
    "E005": "What cannot be read: a file that is missing, not UTF-8, too large, nested too deeply or in a wrong place,"
    " a tree without specs, errors beyond the 200 that are kept.",
    "E006": "A name on the command line that is not known, or that stands for several operators; of a new operator one"
    " that it cannot have.",
    "E101": "A key that a spec does not have at this place.",
    "E102": "A key that a spec must have at this place.",
    "E103": "A word that is not one of the allowed ones; the vocabulary lists data types, those of each dialect,"
    " levels, enums and kernels.",
    "E104": "A value of another type than the spec needs, as the number 3.0 where a level \"3.0\" is a string.",
    "E105": "A name that cannot be a name in Python: letters, digits and _ only, a letter first, and no keyword.",
    "E106": "A text or list that is too long, too short, or has characters that cannot stand in a docstring. Or a"
    " reason that begins with what holds for each.",
    "E201": "An expression that Python's grammar does not accept, or that is not one line of ASCII.",
    "E202": "A part of Python that the constraint language does without, so that evaluation always ends.",
    "E203": "A name that is not a field, a function, a shared constraint or a part of a tensor.",
    "E204": "A value of another type than an expression needs at this place.",
    "E210": "A rule without an origin. Each rule names the place on the page, or owns the choice with a reason.",
    "E211": "The same id, field or data type twice.",
    "E212": "Exactly one of two keys must be given.",
    "E213": "`needs` names rules above this one; they decide whether this one has a meaning.",
    "E214": "A field whose kind, type and keys do not fit together.",
    "E215": "An entry of the vocabulary that contradicts itself or another one.",
    "E216": "An attribute or a derived value that nothing reads: it would have no effect.",
    "E220": "An example, and each call of an equivalence, must satisfy every constraint; one of the two is wrong.",
    "E221": "`violate` must break its constraint: it becomes the constraint's negative test.",
    "E222": "`violate` must break its constraint and no other, so that the test proves which check fired.",
    "E223": "Data that does not fit its data type or is not rectangular, or a change that does not fit the field.",
    "E224": "An example, or a call of an equivalence, that an operator's own tables or sizes do not allow.",
    "E225": "An expression that has no value for an example or a case of an equivalence, though all constraints hold.",
    "E226": "Data types that tables and constraints let through, and for which the kernel has no code.",
    "E227": "Sizes, axes or windows that constraints let through, and by which the kernel would reach beyond a tensor.",
    "E228": "Two examples of the same inputs and attributes that expect other values of an output.",
    "E230": "A newer feature level never removes a data type or a rank, and only dialects with levels name them.",
    "E231": "Tables stand newest first; the oldest is of the level that introduced the operator. Where an attribute"
    " chooses among them, each of its values has exactly one group of tables. Ranks are those of the dialect.",
    "E232": "A derived value that differs between versions of an ONNX operator, which both have all that it reads, of"
    " the same types.",
    "E250": "A draft has a TODO for all that must be filled in.",
    "E301": "A generated file was edited by hand: the template or module that makes it is the place for the change. Or"
    " a file is in generated/ that its MANIFEST does not list: it may be yours.",
    "E302": "A file or folder that the system does not read, write or list, or a link where none may be.",
    "E401": "A template failed while rendering, mostly for a name that is not defined.",
    "E402": "A template that Jinja cannot read, or a kernel or helpers that Python cannot, or with imports below code.",
    "E403": "A template, or a module that code of the package imports, that is not there.",
    "E404": "A template whose output is not Python, or code or text of the package that is none.",
    "E405": "A name that a kernel defines twice, such as that of two helpers that are pasted into it; or two files of"
    " helpers that have one name.",
    "E406": "A kernel, or helpers, that import what is not there or what kernels may not import; helpers that import"
    " each other in a circle.",
}  # fmt: skip
