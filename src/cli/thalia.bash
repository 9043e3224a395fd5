# bash completion for thalia
# shellcheck disable=SC2034

# made by tools/documents.py {
_thalia_commands='info ls cat stats verify convert migrate extract merge diff log grow set rename rm append compact recover salvage compress decompress delta resolve quantize prune plot report store bench version help'
declare -gA _thalia_options=(
  [info]='--help --metadata --json --color --no-pager --safe --max-memory --old'
  [ls]='--help --recursive --sort --json --color --no-pager --safe --max-memory --old'
  [cat]='--help --slice --format --output --all --dense --force --color --no-pager --safe --max-memory --old --search --absolute-bases'
  [stats]='--help --fail-on --threads --json --color --no-pager --safe --max-memory --old --search --absolute-bases'
  [verify]='--help --quick --resolve --threads --json --color --no-pager --safe --max-memory --old --search --absolute-bases'
  [convert]='--help --from --to --regions --precision --dense --lossless --dequantize --shard-size --all-types --codec --level --checksum --leaves --sha256 --max-header --threads --force --reproducible --json --color --no-pager --safe --max-memory --old --search --absolute-bases'
  [migrate]='--help --to --force --reproducible --json --color --no-pager --safe --max-memory'
  [extract]='--help --regions --codec --level --checksum --leaves --sha256 --max-header --threads --force --reproducible --json --color --no-pager --safe --max-memory --search --absolute-bases'
  [merge]='--help --output --prefer --codec --level --checksum --leaves --sha256 --max-header --threads --force --reproducible --json --color --no-pager --safe --max-memory'
  [diff]='--help --values --stat --atol --rtol --all --threads --json --color --no-pager --safe --max-memory --old --search --absolute-bases'
  [log]='--help --json --color --no-pager --safe --max-memory --search --absolute-bases'
  [grow]='--help --neurons --source --population --init --sparsity --scale --seed --axes --reason --threads --wait --reproducible --json --color --no-pager --safe --max-memory'
  [set]='--help --unset --step --wait --reproducible --json --color --no-pager --safe --max-memory'
  [rename]='--help --threads --wait --reproducible --json --color --no-pager --safe --max-memory'
  [rm]='--help --threads --wait --reproducible --json --color --no-pager --safe --max-memory'
  [append]='--help --regions --threads --wait --reproducible --json --color --no-pager --safe --max-memory'
  [compact]='--help --threads --wait --force --reproducible --json --color --no-pager --safe --max-memory'
  [recover]='--help --threads --wait --json --color --no-pager --safe --max-memory'
  [salvage]='--help --side-file --threads --force --reproducible --json --color --no-pager --safe --max-memory'
  [compress]='--help --codec --level --threads --force --json --color --no-pager --safe --max-memory'
  [decompress]='--help --threads --force --json --color --no-pager --safe --max-memory'
  [delta]='--help --threshold --low-rank --bits-per-element --max-rank --max-loss --exclude --codec --level --threads --force --reproducible --json --color --no-pager --safe --max-memory --old --search --absolute-bases'
  [resolve]='--help --codec --level --threads --force --reproducible --json --color --no-pager --safe --max-memory --search --absolute-bases'
  [quantize]='--help --bits --group-size --adaptive --sensitivity --include --exclude --min-elements --max-generations --codec --level --checksum --leaves --sha256 --max-header --threads --force --reproducible --json --color --no-pager --safe --max-memory'
  [prune]='--help --region --neurons --threshold --min-age --importance-window --importance --protect --min-silent --strong --axes --codec --level --checksum --leaves --sha256 --max-header --threads --force --reproducible --json --color --no-pager --safe --max-memory --search --absolute-bases'
  [plot]='--help --most --output --threads --force --color --no-pager --safe --max-memory --old --search --absolute-bases'
  [report]='--help --output --threads --force --color --no-pager --safe --max-memory --old --search --absolute-bases'
  [store]='--help --json --color --no-pager'
  ['store init']='--help --new --preset --phases --metric --extension --seed --format --keep --every-steps --every --keep-best --max-age --max-bytes --squash --json --color --no-pager'
  ['store save']='--help --phase --step --metric --key --wait --force --json --color --no-pager --safe --max-memory'
  ['store list']='--help --phase --json --color --no-pager'
  ['store watch']='--help --phase --interval --json --color --no-pager'
  ['store latest']='--help --phase --best --json --color --no-pager --safe --max-memory'
  ['store restore']='--help --phase --step --gate --force --json --color --no-pager --safe --max-memory'
  ['store verify']='--help --phase --quick --threads --json --color --no-pager --safe --max-memory'
  ['store doctor']='--help --phase --quick --fix --threads --wait --json --color --no-pager --safe --max-memory'
  ['store prune']='--help --phase --dry-run --keep --every-steps --every --keep-best --max-age --max-bytes --squash --wait --json --color --no-pager --safe --max-memory'
  ['store promote']='--help --phase --step --gate --wait --force --json --color --no-pager --safe --max-memory'
  ['store pool']='--help --phase --step --mu --sigma --games --win-rate --seed --index --wait --json --color --no-pager --safe --max-memory'
  ['store transition']='--help --seed --wait --force --json --color --no-pager --safe --max-memory'
  [bench]='--help --dir --size --rounds --threads --json --color --no-pager'
  [version]='--help --json --color --no-pager'
  [help]='--help --json --color --no-pager'
)
declare -gA _thalia_offers=(
  ['* --threads']=''
  ['* --color']='auto always never'
  ['* --max-memory']=''
  ['* --search']='@folder'
  ['* --codec']='none zstd lz4 plane_entropy packed_exponents auto'
  ['* --level']=''
  ['* --checksum']='none sha256 crc32 block_tree'
  ['* --leaves']='xxh3_128 sha256'
  ['* --max-header']=''
  ['* --keep']=''
  ['* --every-steps']=''
  ['* --every']=''
  ['* --keep-best']=''
  ['* --max-age']=''
  ['* --max-bytes']=''
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
  ['convert --from']='thalia safetensors thalia-0.1 mckp mst mithril-quantized mithril-orbax gptrs gptrsten entity loom-json pt npz npy gguf onnx thalia-shards'
  ['convert --to']='thalia safetensors thalia-0.1 mckp mst mithril-quantized mithril-orbax gptrs gptrsten entity loom-json pt npz npy gguf onnx'
  ['convert --regions']='auto none'
  ['convert --precision']='keep fp32 fp16 bf16 mixed'
  ['convert --shard-size']=''
  ['convert 1']='@file'
  ['convert 2']='@file'
  ['migrate --to']='0.1 1.0'
  ['migrate 1']='@file'
  ['migrate 2']='@file'
  ['extract --regions']='@regions:1'
  ['extract 1']='@file'
  ['extract 2']='@file'
  ['merge -o']='@file'
  ['merge --output']='@file'
  ['merge --prefer']='first last @file'
  ['merge +']='@file'
  ['diff --atol']=''
  ['diff --rtol']=''
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
  ['append --regions']='@regions:2'
  ['append 1']='@file'
  ['append 2']='@file'
  ['compact 1']='@file'
  ['compact 2']='@file'
  ['recover 1']='@file'
  ['salvage --side-file']='@file'
  ['salvage 1']='@file'
  ['salvage 2']='@file'
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
  ['delta --codec']='none zstd lz4 plane_entropy packed_exponents'
  ['delta --level']=''
  ['delta 1']='@file'
  ['delta 2']='@file'
  ['delta 3']='@file'
  ['resolve --codec']='none zstd lz4 plane_entropy packed_exponents'
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
  ['prune --region']='@region:1'
  ['prune --neurons']=''
  ['prune --threshold']=''
  ['prune --min-age']=''
  ['prune --importance-window']=''
  ['prune --importance']=''
  ['prune --protect']=''
  ['prune --min-silent']=''
  ['prune --strong']=''
  ['prune --axes']=''
  ['prune 1']='@file'
  ['prune 2']='@file'
  ['plot --most']=''
  ['plot -o']='@file'
  ['plot --output']='@file'
  ['plot 1']='growth weights diff chain'
  ['plot +']='@file'
  ['report -o']='@file'
  ['report --output']='@file'
  ['report 1']='@file'
  ['report 2']='@file'
  ['store 1']='init save list watch latest restore verify doctor prune promote pool transition'
  ['store init --preset']='hydra'
  ['store init --phases']=''
  ['store init --metric']=''
  ['store init --extension']=''
  ['store init --seed']=''
  ['store init --format']='toml json'
  ['store init 1']='@folder'
  ['store save --phase']='@phase:1'
  ['store save --step']=''
  ['store save --metric']=''
  ['store save --key']=''
  ['store save 1']='@folder'
  ['store save 2']='@file'
  ['store list --phase']='@phase:1'
  ['store list 1']='@folder'
  ['store watch --phase']='@phase:1'
  ['store watch --interval']=''
  ['store watch 1']='@folder'
  ['store latest --phase']='@phase:1'
  ['store latest 1']='@folder'
  ['store restore --phase']='@phase:1'
  ['store restore --step']=''
  ['store restore --gate']='@gate:1'
  ['store restore 1']='@folder'
  ['store restore 2']='@file'
  ['store verify --phase']='@phase:1'
  ['store verify 1']='@folder'
  ['store doctor --phase']='@phase:1'
  ['store doctor 1']='@folder'
  ['store prune --phase']='@phase:1'
  ['store prune 1']='@folder'
  ['store promote --phase']='@phase:1'
  ['store promote --step']=''
  ['store promote --gate']='@gate:1'
  ['store promote 1']='@folder'
  ['store pool --phase']='@phase:1'
  ['store pool --step']=''
  ['store pool --mu']=''
  ['store pool --sigma']=''
  ['store pool --games']=''
  ['store pool --win-rate']=''
  ['store pool --seed']=''
  ['store pool --index']=''
  ['store pool 1']='@folder'
  ['store pool 2']='list add rate draw'
  ['store pool 3']=''
  ['store transition --seed']=''
  ['store transition 1']='@folder'
  ['store transition 2']='@phase:1'
  ['store transition 3']='@phase:1'
  ['bench --dir']='@folder'
  ['bench --size']='256MiB 1GiB 4GiB'
  ['bench --rounds']=''
  ['help 1']='info ls cat stats verify convert migrate extract merge diff log grow set rename rm append compact recover salvage compress decompress delta resolve quantize prune plot report store bench version help'
  ['help 2']='init save list watch latest restore verify doctor prune promote pool transition'
)
# } made by tools/documents.py

# Splits the line up to the cursor as the shell would: words without their quotes in `words`, of the
# last one as it is typed `typed`, and the quote in which it ends `quote`. bash's own COMP_WORDS are
# split at ":" and "=" too, and keep their quotes. Nothing is expanded but "~/".
_thalia_split() {
  local at char word='' begun='' line=${COMP_LINE:0:COMP_POINT}
  words=() typed='' quote=''
  for ((at = 0; at < ${#line}; ++at)); do
    char=${line:at:1}
    if [[ -z $quote && $char == [[:space:]] ]]; then
      [[ -n $begun ]] && words+=("$word")
      word='' begun='' typed=''
      continue
    fi
    [[ -z $begun && ${line:at:2} == \~/ ]] && word=$HOME typed='~' begun=1 && continue
    begun=1 typed+=$char
    if [[ $char == "$quote" ]]; then
      quote=''
    elif [[ -z $quote && $char == [\'\"] ]]; then
      quote=$char
    elif [[ $char == \\ && $quote != \' ]]; then
      ((++at))
      char=${line:at:1}
      typed+=$char
      [[ $quote == '"' && $char != [\"\\\$\`] ]] && word+=\\
      word+=$char
    else
      word+=$char
    fi
  done
  words+=("$word")
}

# Offers the lines of stdin, $1 in front of each, quoted as they need it. Of a word in which readline
# sees several, as it breaks at ":" and the like, it replaces the last one alone: `kept`, with which each line
# begins, stands there already.
_thalia_lines() {
  local lines
  mapfile -t lines
  [[ ${#lines[@]} == 0 ]] && return
  lines=("${lines[@]/#/"$1"}")
  lines=("${lines[@]#"$kept"}")
  case $quote in
    \') lines=("${lines[@]//\'/\'\\\'\'}") ;;
    \")
      lines=("${lines[@]//\\/\\\\}")
      lines=("${lines[@]//\"/\\\"}")
      lines=("${lines[@]//\$/\\\$}")
      lines=("${lines[@]//\`/\\\`}")
      ;;
    *) mapfile -t lines < <(printf '%q\n' "${lines[@]}") ;;
  esac
  COMPREPLY+=("${lines[@]}")
}

# What the value of option $2 of command $1 can be; @none where it is none that takes a value.
_thalia_offers_of() {
  REPLY=${_thalia_offers["$1 $2"]-${_thalia_offers["* $2"]-@none}}
}

# Offers what the words of $1 are or stand for, where it begins with $2, with $3 in front; $4 and on
# are the arguments.
_thalia_offer() {
  local offer place begun=$2 front=$3 offers=$1
  shift 3
  for offer in $offers; do
    place=${offer##*:} # of the argument that it is of
    case $offer in
      @file | @folder)
        local kind=-f
        [[ $offer == @folder ]] && kind=-d
        if [[ -z $front$kept ]]; then
          # readline quotes these itself.
          compopt -o filenames 2>/dev/null
          mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$kind" -- "$begun")
        else
          _thalia_lines "$front" < <(compgen "$kind" -- "$begun")
        fi
        ;;
      @*)
        offer=${offer#@}
        _thalia_lines "$front" < <(thalia __complete "${offer%:*}" "${!place}" "$begun" 2>/dev/null)
        ;;
      "$begun"*) _thalia_lines "$front" <<<"$offer" ;;
    esac
  done
}

_thalia() {
  local words typed quote kept='' word command arguments=() option='' at=2 REPLY
  COMPREPLY=()
  _thalia_split
  word=${words[-1]} command=${words[1]}
  # What readline keeps of the last word, without its quotes.
  if [[ $typed == *"$2" ]]; then
    kept=$(COMP_LINE=${typed%"$2"} COMP_POINT=${#typed} && _thalia_split && printf '%s' "${words[-1]}")
  fi
  if ((${#words[@]} <= 2)); then
    _thalia_offer "$_thalia_commands --help --version" "$word" ''
    return
  fi
  # The second word of a name, as it stands in front of the cursor.
  if ((${#words[@]} > 3)) && [[ -n ${_thalia_options["$command ${words[2]}"]-} ]]; then
    command+=" ${words[2]}" at=3
  fi
  for (( ; at < ${#words[@]} - 1; ++at)); do
    if [[ -n $option ]]; then
      option='' # that was its value
    elif [[ ${words[at]} != -* ]]; then
      arguments+=("${words[at]}")
    elif _thalia_offers_of "$command" "${words[at]}" && [[ $REPLY != @none ]]; then
      option=${words[at]}
    fi
  done
  local place=$((${#arguments[@]} + 1))
  if [[ -n $option ]]; then
    _thalia_offers_of "$command" "$option"
    _thalia_offer "$REPLY" "$word" '' "${arguments[@]}"
  elif [[ $word == --*=* ]]; then
    _thalia_offers_of "$command" "${word%%=*}"
    _thalia_offer "$REPLY" "${word#*=}" "${word%%=*}=" "${arguments[@]}"
  elif [[ $word == -* ]]; then
    _thalia_offer "${_thalia_options[$command]}" "$word" ''
  else
    _thalia_offer "${_thalia_offers["$command $place"]-${_thalia_offers["$command +"]}}" "$word" '' "${arguments[@]}"
  fi
}

complete -F _thalia thalia
