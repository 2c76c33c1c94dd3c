"""The operator's config file for clouds without a device plugin: what a container needs to use a GPU.

The texts are those of 2017, as `kubectl describe configmaps tf-job-operator-config` showed them.
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

VERSION: Final = "tensorflow.org/v1alpha1"
"""API version of the TFJobs in the old documents that install with `cloud=azure`."""
CONFIGS: Final = {"azure": _SERVER + AZURE, "gke": _SERVER + GKE}
"""Cloud -> text of its config file."""
