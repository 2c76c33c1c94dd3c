# Unpacks code from standard input, checks it, and only then renames it to its hash.
# receive.sh FOLDER HASH NAME_OF_THIS_UPLOAD CHECKSUM_OF_THE_LIST [HASH_OR_packages/LAYER_TO_DELETE...]
set -eu
umask 022
folder=$1 hash=$2 upload=$3 sum=$4
shift 4
mkdir -p "$folder/packages"
cd "$folder"
chmod 1777 packages 2>/dev/null || true # tasks may have another user; fails if another user created the folder
# Delete what killed clients have left.
find . packages -maxdepth 1 -name '*.part' -mtime +0 -exec rm -rf {} + 2>/dev/null || true
for old; do
    echo "deleting $old, which no job uses" >&2
    case $old in
    # Rename first, so that no layer is half deleted. The next task that installs deletes files of another user.
    packages/*) mv "$old" "$old.part" 2>/dev/null && rm -rf "$old.part" 2>/dev/null || true ;;
    *) rm -rf "$old" "$old.sums" ;;
    esac
done
part=$hash.$upload.part
trap 'rm -rf "$part"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$part"
tar -xzf - -C "$part"
cd "$part"
echo "$sum  sums" | sha256sum -c >/dev/null
(cd code && sha256sum -c ../sums) >/dev/null
cd ..
mv "$part/sums" "$hash.sums"
mv "$part/code" "$part/$upload"
[ -d "$hash" ] || mv "$part/$upload" "$hash"
rm -rf "${hash:?}/$upload" # another upload of the same code was slightly faster, so this one was moved into it
