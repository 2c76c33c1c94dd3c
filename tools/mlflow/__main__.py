"""`python -m tools.mlflow`: install MLflow unless it is there."""

from tools import mlflow

if __name__ == "__main__":
    python = mlflow.install(lambda line: print(line, flush=True))
    print(f"MLflow {mlflow.pinned_version()} in {python.parent.parent}")
