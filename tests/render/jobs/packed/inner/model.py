print("a model")
