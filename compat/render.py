"""The command line of an older tool: python render.py --config FILE [--out FILE] [--create-namespace]"""

import argparse
import sys


def main() -> None:
    parser = argparse.ArgumentParser(description="Render a config with resources as Kubernetes manifests.")
    parser.add_argument("--config", required=True, help="the config file")
    parser.add_argument("--out", help="where to write; default: <config>.rendered.yaml")
    parser.add_argument("--create-namespace", action="store_true", help="also write the Namespace")
    given = parser.parse_args()
    try:
        from tfyard.cli.main import main as tfyard
    except ImportError as error:
        sys.exit(f"{error}; first: pip install -r requirements.txt")
    output = given.out or f"{given.config}.rendered.yaml"
    options = ["--create-namespace"] if given.create_namespace else []
    sys.argv = ["tfyard", "render", given.config, "--output", output, *options]
    tfyard()


if __name__ == "__main__":
    main()
