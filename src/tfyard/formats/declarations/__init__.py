"""Reading, problems and explanations, all derived from one declaration: the Structs of a format."""
