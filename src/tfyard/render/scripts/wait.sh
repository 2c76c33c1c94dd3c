# Waits until the name of every task resolves. TensorFlow fails if the name of another task does not, and a
# cluster's DNS may resolve a new name only seconds after its pod has started.
if command -v getent > /dev/null; then
  resolves() { getent hosts "$1" > /dev/null; }
else
  resolves() { "$(command -v python3 || command -v python)" -c 'import socket, sys; socket.getaddrinfo(sys.argv[1], None)' "$1" 2> /dev/null; }
fi

waited=0
while read -r name || [ -n "$name" ]; do
  until resolves "$name"; do
    if [ $((waited % 30)) -eq 0 ]; then
      echo "waiting for the name $name, $waited s so far: its pod may not be scheduled yet (kubectl get pods), or the cluster's DNS does not work"
    fi
    sleep 2
    waited=$((waited + 2))
  done
done < "$1"
echo "all names resolve, after $waited s"
