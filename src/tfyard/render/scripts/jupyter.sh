# Starts Jupyter. The hash of the password is in a file from a Secret; a password in PASSWORD (from a Secret that
# the user created) is hashed here and removed from the environment.
if [ -n "$PASSWORD" ]; then
  hashed=$(python3 -c 'import os; from jupyter_server.auth import passwd; print(passwd(os.environ["PASSWORD"]))') || exit 1
  unset PASSWORD
  set -- "$@" "--PasswordIdentityProvider.hashed_password=$hashed"
fi
interface=server
for found in notebook lab; do
  if command -v "jupyter-$found" > /dev/null; then interface=$found; fi
done
exec jupyter "$interface" --ip=0.0.0.0 --no-browser --allow-root --ServerApp.root_dir="$NOTEBOOKS" "$@"
