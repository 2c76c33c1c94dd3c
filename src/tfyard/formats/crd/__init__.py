"""The CustomResourceDefinitions of TFJob (`documents.py`), generated from the declarations of `formats`.

They replace an admission webhook (rules), a conversion webhook (every version lists the fields of all) and a
defaulting webhook (schema defaults). `install/` and `remote/` install them.
"""
