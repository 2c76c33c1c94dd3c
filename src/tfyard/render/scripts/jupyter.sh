# Starts Jupyter. The password's hash is a file of a Secret; a password in PASSWORD (from a Secret that was
# made by hand) is hashed here and not kept in the environment.
if [ -n "$PASSWORD" ]; then
  hashed=$(python3 -c 'import os; from jupyter_server.auth import passwd; print(passwd(os.environ["PASSWORD"]))') || exit 1
  unset PASSWORD
  set -- "$@" "--PasswordIdentityProvider.hashed_password=$hashed"
fi
face=server
for better in notebook lab; do
  if command -v "jupyter-$better" > /dev/null; then face=$better; fi
done
exec jupyter "$face" --ip=0.0.0.0 --no-browser --allow-root --ServerApp.root_dir="$NOTEBOOKS" "$@"
