# bash completion for thalia

# Offers those of the lines of $1 that begin with $2, quoted as they need it.
_thalia_lines() {
  local line
  while IFS= read -r line; do
    [[ -n $line && $line == "$2"* ]] && COMPREPLY+=("$(printf '%q' "$line")")
  done <<<"$1"
}

_thalia_words() {
  _thalia_lines "${1// /$'\n'}" "$2"
}

# The first column of what ls shows, up to a blank line; quietly nothing where it cannot.
_thalia_first_column() {
  thalia ls "$@" 2>/dev/null | awk -F '  +' 'NR > 1 && NF == 0 { exit } NR > 1 { print $1 }'
}

_thalia_tensors() {
  if [[ $1 == *.safetensors ]]; then
    _thalia_first_column "$1"
    return
  fi
  local region tensor
  while IFS= read -r region; do
    while IFS= read -r tensor; do
      printf '%s/%s\n' "$region" "$tensor"
    done < <(_thalia_first_column "$1" "$region")
  done < <(_thalia_first_column "$1")
}

_thalia() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} commands='info ls cat verify convert migrate extract merge diff grow append compact recover compress decompress delta resolve quantize plot bench version help'
  local read='--safe --max-memory' chain='--safe --max-memory --search --absolute-bases'
  local save='--codec --level --checksum --leaves --sha256 --threads --max-header --json'
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _thalia_words "$commands --help --version" "$word"
    return
  fi
  case $before in
    --format) _thalia_words 'text json npy raw' "$word"; return ;;
    --prefer)
      _thalia_words 'first last' "$word"
      compopt -o filenames 2>/dev/null
      mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
      return
      ;;
    --to)
      if [[ $command == migrate ]]; then
        _thalia_words '0.1 1.0' "$word"
      else
        _thalia_words 'thalia safetensors thalia-0.1 mckp' "$word"
      fi
      return
      ;;
    --from) _thalia_words 'thalia safetensors thalia-0.1 mckp mst' "$word"; return ;;
    --codec)
      case $command in
        compress) _thalia_words 'zstd lz4' "$word" ;;
        delta | resolve) _thalia_words 'store zstd lz4 plane_entropy packed_exponents' "$word" ;;
        *) _thalia_words 'store zstd lz4 plane_entropy packed_exponents auto' "$word" ;;
      esac
      return
      ;;
    --precision) _thalia_words 'keep fp32 fp16 bf16 mixed' "$word"; return ;;
    --init) _thalia_words 'sparse_random xavier uniform' "$word"; return ;;
    --checksum) _thalia_words 'none sha256 crc32 block_tree' "$word"; return ;;
    --leaves) _thalia_words 'xxh3_128 sha256' "$word"; return ;;
    --neurons | --source | --population | --sparsity | --scale | --seed | --axes | --reason) return ;;
    --slice | --level | --threads | --max-header | --rounds) return ;;
    --size) _thalia_words '256MiB 1GiB 4GiB' "$word"; return ;;
    --threshold | --bits-per-element | --max-rank | --max-loss | --bits | --group-size | --include | --exclude | --min-elements | --max-generations) return ;;
    --dir | --search)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$word")
      return
      ;;
    --regions)
      if [[ $command == convert ]]; then
        _thalia_words 'auto none' "$word"
      elif [[ $command == append ]]; then
        _thalia_lines "$(_thalia_first_column "${COMP_WORDS[3]}")" "$word"
      else
        _thalia_lines "$(_thalia_first_column "${COMP_WORDS[2]}")" "$word"
      fi
      return
      ;;
  esac
  if [[ $command == plot ]] && ((COMP_CWORD == 2)); then
    _thalia_words growth "$word"
  elif [[ $word == -* ]]; then
    local options=
    case $command in
      version) options='--json' ;;
      info | ls) options="--json $read" ;;
      cat) options="--slice --format --output --all --dense $chain" ;;
      verify) options="--quick --resolve --threads --json $chain" ;;
      convert) options="--from --to --regions --precision $save $chain" ;;
      migrate) options="--to --json $read" ;;
      extract) options="--regions $save $chain" ;;
      merge) options="--prefer $save $read" ;;
      diff) options="--values --all --threads --json $chain" ;;
      grow) options="--neurons --source --population --init --sparsity --scale --seed --axes --reason --wait --threads --json $read" ;;
      append) options="--regions --wait --threads --json $read" ;;
      compress) options="--codec --level --threads --json $read" ;;
      decompress) options="--threads --json $read" ;;
      delta) options="--threshold --low-rank --bits-per-element --max-rank --max-loss --exclude --codec --level --threads --json $chain" ;;
      resolve) options="--codec --level --threads --json $chain" ;;
      quantize) options="--bits --group-size --adaptive --sensitivity --include --exclude --min-elements --max-generations $save $read" ;;
      compact | recover) options="--wait --threads --json $read" ;;
      plot) options="--output $read" ;;
      bench) options='--dir --size --rounds --threads --json' ;;
    esac
    _thalia_words "$options --help" "$word"
  elif [[ $command == help ]]; then
    _thalia_words "$commands" "$word"
  elif [[ $command == ls || $command == grow ]] && ((COMP_CWORD == 3)); then
    _thalia_lines "$(_thalia_first_column "${COMP_WORDS[2]}")" "$word"
  elif [[ $command == cat ]] && ((COMP_CWORD == 3)); then
    _thalia_lines "$(_thalia_tensors "${COMP_WORDS[2]}")" "$word"
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}

complete -F _thalia thalia
