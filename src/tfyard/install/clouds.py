"""The operator's config file for clouds whose nodes have no device plugin: what a container needs to use a GPU.

The texts of 2017, as people find them in `kubectl describe configmaps tf-job-operator-config`.
"""

from typing import Final

_SERVER = "grpcServerFilePath: /opt/mlkube/grpc_tensorflow_server/grpc_tensorflow_server.py\n"

AZURE = """\
accelerators:
  alpha.kubernetes.io/nvidia-gpu:
    envVars:
      - name: LD_LIBRARY_PATH
        value: /usr/lib/nvidia:/usr/lib/x86_64-linux-gnu
    volumes:
      - name: lib
        mountPath: /usr/lib/nvidia
        hostPath:  /usr/lib/nvidia-384
      - name: bin
        mountPath: /usr/local/nvidia/bin
        hostPath: /usr/lib/nvidia-384/bin
      - name: libcuda
        mountPath: /usr/lib/x86_64-linux-gnu/libcuda.so.1
        hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.1
"""
GKE = """\
accelerators:
  alpha.kubernetes.io/nvidia-gpu:
    volumes:
      - name: nvidia-libraries
        mountPath: /usr/local/nvidia/lib64
        hostPath: /home/kubernetes/bin/nvidia/lib
      - name: nvidia-debug-tools
        mountPath: /usr/local/bin/nvidia
        hostPath: /home/kubernetes/bin/nvidia/bin
"""

CONFIGS: Final = {"azure": _SERVER + AZURE, "gke": _SERVER + GKE}
"""Cloud -> text of the config file."""
