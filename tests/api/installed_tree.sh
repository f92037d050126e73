# install_and_move BUILD PLACE: the tree as a user has it, in PLACE/moved.
install_and_move() {
  local build=$1 place=$2
  local manifest=$build/install_manifest.txt  # of what somebody may have installed in earnest
  [[ ! -e $manifest ]] || cp "$manifest" "$place/manifest"
  cmake --install "$build" --prefix "$place/first" >"$place/log"
  rm -f "$manifest"
  [[ ! -e $place/manifest ]] || cp "$place/manifest" "$manifest"
  mv "$place/first" "$place/moved"  # nothing may remember where it was installed
}
