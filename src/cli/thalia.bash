# bash completion for thalia
# shellcheck disable=SC2034

# made by tools/documents.py {
_thalia_commands='info ls cat stats verify convert migrate extract merge diff log grow set rename rm append compact recover compress decompress delta resolve quantize plot bench version help'
declare -gA _thalia_options=(
  [info]='--help --metadata --json --safe --max-memory'
  [ls]='--help --recursive --sort --json --safe --max-memory'
  [cat]='--help --slice --format --output --all --dense --force --safe --max-memory --search --absolute-bases'
  [stats]='--help --fail-on --threads --json --safe --max-memory --search --absolute-bases'
  [verify]='--help --quick --resolve --threads --json --safe --max-memory --search --absolute-bases'
  [convert]='--help --from --to --regions --precision --dense --codec --level --checksum --leaves --sha256 --max-header --threads --force --reproducible --json --safe --max-memory --search --absolute-bases'
  [migrate]='--help --to --force --reproducible --json --safe --max-memory'
  [extract]='--help --regions --codec --level --checksum --leaves --sha256 --max-header --threads --force --reproducible --json --safe --max-memory --search --absolute-bases'
  [merge]='--help --output --prefer --codec --level --checksum --leaves --sha256 --max-header --threads --force --reproducible --json --safe --max-memory'
  [diff]='--help --values --all --threads --json --safe --max-memory --search --absolute-bases'
  [log]='--help --json --safe --max-memory --search --absolute-bases'
  [grow]='--help --neurons --source --population --init --sparsity --scale --seed --axes --reason --threads --wait --reproducible --json --safe --max-memory'
  [set]='--help --unset --step --wait --reproducible --json --safe --max-memory'
  [rename]='--help --threads --wait --reproducible --json --safe --max-memory'
  [rm]='--help --threads --wait --reproducible --json --safe --max-memory'
  [append]='--help --regions --threads --wait --reproducible --json --safe --max-memory'
  [compact]='--help --threads --wait --force --reproducible --json --safe --max-memory'
  [recover]='--help --threads --wait --json --safe --max-memory'
  [compress]='--help --codec --level --threads --force --json --safe --max-memory'
  [decompress]='--help --threads --force --json --safe --max-memory'
  [delta]='--help --threshold --low-rank --bits-per-element --max-rank --max-loss --exclude --codec --level --threads --force --reproducible --json --safe --max-memory --search --absolute-bases'
  [resolve]='--help --codec --level --threads --force --reproducible --json --safe --max-memory --search --absolute-bases'
  [quantize]='--help --bits --group-size --adaptive --sensitivity --include --exclude --min-elements --max-generations --codec --level --checksum --leaves --sha256 --max-header --threads --force --reproducible --json --safe --max-memory'
  [plot]='--help --output --force --safe --max-memory'
  [bench]='--help --dir --size --rounds --threads --json'
  [version]='--help --json'
  [help]='--help --json'
)
declare -gA _thalia_offers=(
  ['* --threads']=''
  ['* --max-memory']=''
  ['* --search']='@folder'
  ['* --codec']='store zstd lz4 plane_entropy packed_exponents auto'
  ['* --level']=''
  ['* --checksum']='none sha256 crc32 block_tree'
  ['* --leaves']='xxh3_128 sha256'
  ['* --max-header']=''
  ['info 1']='@file'
  ['ls --sort']='size name'
  ['ls 1']='@file'
  ['ls +']='@region:1 @tensor:1'
  ['cat --slice']=''
  ['cat --format']='text json npy raw'
  ['cat -o']='@file'
  ['cat --output']='@file'
  ['cat 1']='@file'
  ['cat 2']='@tensor:1'
  ['stats --fail-on']='nan infinite any'
  ['stats 1']='@file'
  ['stats +']='@tensor:1'
  ['verify +']='@file'
  ['convert --from']='thalia safetensors thalia-0.1 mckp mst'
  ['convert --to']='thalia safetensors thalia-0.1 mckp'
  ['convert --regions']='auto none'
  ['convert --precision']='keep fp32 fp16 bf16 mixed'
  ['convert 1']='@file'
  ['convert 2']='@file'
  ['migrate --to']='0.1 1.0'
  ['migrate 1']='@file'
  ['migrate 2']='@file'
  ['extract --regions']='@region:1'
  ['extract 1']='@file'
  ['extract 2']='@file'
  ['merge -o']='@file'
  ['merge --output']='@file'
  ['merge --prefer']='first last @file'
  ['merge +']='@file'
  ['diff 1']='@file'
  ['diff 2']='@file'
  ['diff +']='@tensor:1'
  ['log 1']='@file'
  ['grow --neurons']=''
  ['grow --source']=''
  ['grow --population']=''
  ['grow --init']='sparse_random xavier uniform'
  ['grow --sparsity']=''
  ['grow --scale']=''
  ['grow --seed']=''
  ['grow --axes']=''
  ['grow --reason']=''
  ['grow 1']='@file'
  ['grow 2']='@region:1'
  ['set --unset']=''
  ['set --step']=''
  ['set 1']='@file'
  ['set +']=''
  ['rename 1']='@file'
  ['rename 2']='@tensor:1'
  ['rename 3']=''
  ['rm 1']='@file'
  ['rm +']='@tensor:1'
  ['append --regions']='@region:2'
  ['append 1']='@file'
  ['append 2']='@file'
  ['compact 1']='@file'
  ['compact 2']='@file'
  ['recover 1']='@file'
  ['compress --codec']='zstd lz4'
  ['compress --level']=''
  ['compress 1']='@file'
  ['compress 2']='@file'
  ['decompress 1']='@file'
  ['decompress 2']='@file'
  ['delta --threshold']=''
  ['delta --bits-per-element']=''
  ['delta --max-rank']=''
  ['delta --max-loss']=''
  ['delta --exclude']=''
  ['delta --codec']='store zstd lz4 plane_entropy packed_exponents'
  ['delta --level']=''
  ['delta 1']='@file'
  ['delta 2']='@file'
  ['delta 3']='@file'
  ['resolve --codec']='store zstd lz4 plane_entropy packed_exponents'
  ['resolve --level']=''
  ['resolve 1']='@file'
  ['resolve 2']='@file'
  ['quantize --bits']=''
  ['quantize --group-size']=''
  ['quantize --sensitivity']='@file'
  ['quantize --include']=''
  ['quantize --exclude']=''
  ['quantize --min-elements']=''
  ['quantize --max-generations']=''
  ['quantize 1']='@file'
  ['quantize 2']='@file'
  ['plot -o']='@file'
  ['plot --output']='@file'
  ['plot 1']='growth'
  ['plot 2']='@file'
  ['bench --dir']='@folder'
  ['bench --size']='256MiB 1GiB 4GiB'
  ['bench --rounds']=''
  ['help 1']='info ls cat stats verify convert migrate extract merge diff log grow set rename rm append compact recover compress decompress delta resolve quantize plot bench version help'
)
# } made by tools/documents.py

# Offers those of the lines of $1 that begin with $2, quoted as they need it.
_thalia_lines() {
  local line
  while IFS= read -r line; do
    [[ -n $line && $line == "$2"* ]] && COMPREPLY+=("$(printf '%q' "$line")")
  done <<<"$1"
}

# The first column of what ls shows, up to a blank line, where its heading is $1; quietly nothing
# where it cannot.
_thalia_first_column() {
  thalia ls "${@:2}" 2>/dev/null |
    awk -F '  +' -v heading="$1" 'NR == 1 ? $1 != heading : NF == 0 { exit } NR > 1 { print $1 }'
}

# What the value of option $2 of command $1 can be; @none where it is none that takes a value.
_thalia_offers_of() {
  printf '%s\n' "${_thalia_offers["$1 $2"]-${_thalia_offers["* $2"]-@none}}"
}

# Offers what the words of $1 are or stand for, where it begins with $2; $3 and on are the arguments.
_thalia_offer() {
  local offer place begun=$2 words=$1
  shift 2
  for offer in $words; do
    place=${offer##*:} # of the argument that it is of
    case $offer in
      @file | @folder)
        compopt -o filenames 2>/dev/null
        local kind=-f
        [[ $offer == @folder ]] && kind=-d
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$kind" -- "$begun")
        ;;
      @region:*) _thalia_lines "$(_thalia_first_column region "${!place}")" "$begun" ;;
      @tensor:*) _thalia_lines "$(_thalia_first_column tensor "${!place}" -r)" "$begun" ;;
      *) _thalia_lines "$offer" "$begun" ;;
    esac
  done
}

_thalia() {
  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} arguments=() option='' at
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _thalia_offer "$_thalia_commands --help --version" "$word"
    return
  fi
  for ((at = 2; at < COMP_CWORD; ++at)); do
    if [[ -n $option ]]; then
      option='' # that was its value
    elif [[ ${COMP_WORDS[at]} != -* ]]; then
      arguments+=("${COMP_WORDS[at]}")
    elif [[ $(_thalia_offers_of "$command" "${COMP_WORDS[at]}") != @none ]]; then
      option=${COMP_WORDS[at]}
    fi
  done
  local place=$((${#arguments[@]} + 1))
  if [[ -n $option ]]; then
    _thalia_offer "$(_thalia_offers_of "$command" "$option")" "$word" "${arguments[@]}"
  elif [[ $word == -* ]]; then
    _thalia_offer "${_thalia_options[$command]}" "$word"
  else
    _thalia_offer "${_thalia_offers["$command $place"]-${_thalia_offers["$command +"]}}" "$word" "${arguments[@]}"
  fi
}

complete -F _thalia thalia
