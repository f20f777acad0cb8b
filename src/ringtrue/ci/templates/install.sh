# RINGTRUE_SOURCE says where pip gets Ringtrue.
case "$RINGTRUE_SOURCE" in
  "") echo "RINGTRUE_SOURCE is empty: set it to a Git URL, a wheel or a folder that holds Ringtrue" >&2; exit 2 ;;
  ==*) source="ringtrue$RINGTRUE_SOURCE" ;;
  http*.whl*|http*.zip*|http*.tar.*) source="ringtrue @ $RINGTRUE_SOURCE" ;;
  http*|ssh://*) source="ringtrue @ git+$RINGTRUE_SOURCE" ;;
  *://*) source="ringtrue @ $RINGTRUE_SOURCE" ;;
  git@*:*) source="ringtrue @ git+ssh://${RINGTRUE_SOURCE%%:*}/${RINGTRUE_SOURCE#*:}" ;;
  */*) source="$RINGTRUE_SOURCE" ;;
  [0-9]*) source="ringtrue==$RINGTRUE_SOURCE" ;;
  # A bare name would be looked up in the package index, where it may be anybody's package.
  *) source="./$RINGTRUE_SOURCE"
    if ! test -e "$source"; then
      echo "RINGTRUE_SOURCE=$RINGTRUE_SOURCE is not a folder or wheel here: set it to one, to a Git URL, or to a version like ==0.1.0" >&2; exit 2
    fi ;;
esac
python -m pip install --disable-pip-version-check "$source"
# The extras that ringtrue.toml needs: pip keeps the Ringtrue that it has just installed, and adds only their packages.
extras="$(python -P -m ringtrue ci --extras)"
test -z "$extras" || python -m pip install --disable-pip-version-check "ringtrue[$extras]"
