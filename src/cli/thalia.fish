# fish completion for thalia

# The name of the command, two words where it has two; then the arguments in front of the cursor that are neither
# options nor values of them.
function __thalia_arguments
    set -l is_value no
    set -l first 2
    set -l words (commandline -opc)
    if contains -- "$words[2] $words[3]" $__thalia_pairs
        echo -- "$words[2] $words[3]"
        set first 4
    end
    for word in $words[$first..]
        if test $is_value = yes
            set is_value no
        else if contains -- $word $__thalia_with_value
            set is_value yes
        else if not string match -q -- '-*' $word
            echo -- $word
        end
    end
end

# Whether the command is one of those given.
function __thalia_of
    set -l words (commandline -opc)
    if contains -- "$words[2] $words[3]" $__thalia_pairs
        contains -- "$words[2] $words[3]" $argv
    else
        contains -- "$words[2]" $argv
    end
end

# Whether the cursor is at the argument of that place, of that command; "2+": there or later.
function __thalia_at
    set -l arguments (__thalia_arguments)
    test "$arguments[1]" = "$argv[2]"; or return
    set -l place (string trim -r -c + -- $argv[1])
    test (count $arguments) = $place; or test $argv[1] != $place -a (count $arguments) -gt $place
end

# Names of that kind in the file that is that argument of the command.
function __thalia_names
    set -l arguments (__thalia_arguments)
    set -l begun (commandline -ct | string replace -r -- '^--[a-z-]+=' '' | string unescape)
    thalia __complete $argv[1] (string replace -r '^~/' $HOME/ -- $arguments[(math $argv[2] + 1)]) "$begun" 2>/dev/null
end

complete -c thalia -f
complete -c thalia -n '__thalia_at 0' -l help -l version

# made by tools/documents.py {
set -g __thalia_with_value --atol --axes --bits --bits-per-element --checksum --codec --color --dir --every --every-steps --exclude --extension --fail-on --format --from --games --gate --group-size --importance --importance-window --include --index --init --interval --keep --keep-best --key --leaves --level --max-age --max-bytes --max-generations --max-header --max-loss --max-memory --max-rank --metric --min-age --min-elements --min-silent --most --mu --neurons --output --phase --phases --population --precision --prefer --preset --protect --reason --region --regions --rounds --rtol --scale --search --seed --sensitivity --shard-size --side-file --sigma --size --slice --sort --source --sparsity --step --strong --threads --threshold --to --unset --win-rate -o
set -g __thalia_pairs 'store init' 'store save' 'store list' 'store watch' 'store latest' 'store restore' 'store verify' 'store doctor' 'store prune' 'store promote' 'store pool' 'store transition'
complete -c thalia -n '__thalia_at 0' -a info -d 'what it is: parameters, dtypes, steps, sizes, metadata'
complete -c thalia -n '__thalia_at 0' -a ls -d 'regions, all tensors, or those that patterns fit'
complete -c thalia -n '__thalia_at 0' -a cat -d 'tensors or slices of them, as text, json, npy or raw'
complete -c thalia -n '__thalia_at 0' -a stats -d 'range, moments, zeros and NaN of each tensor'
complete -c thalia -n '__thalia_at 0' -a verify -d 'everything that can be wrong, every finding named'
complete -c thalia -n '__thalia_at 0' -a convert -d 'from one format to another'
complete -c thalia -n '__thalia_at 0' -a migrate -d 'to another version of the format, 0.1 or 1.0'
complete -c thalia -n '__thalia_at 0' -a extract -d 'some regions into a file of their own'
complete -c thalia -n '__thalia_at 0' -a merge -d 'several checkpoints in one, conflicts named'
complete -c thalia -n '__thalia_at 0' -a diff -d 'what changed; with --values by how much'
complete -c thalia -n '__thalia_at 0' -a log -d 'a delta and all that it is based on: steps, times, sizes'
complete -c thalia -n '__thalia_at 0' -a grow -d 'neurons added to a region, in place'
complete -c thalia -n '__thalia_at 0' -a set -d 'members of the metadata, in place'
complete -c thalia -n '__thalia_at 0' -a rename -d 'another name for a tensor, in place'
complete -c thalia -n '__thalia_at 0' -a rm -d 'regions and tensors left out, in place'
complete -c thalia -n '__thalia_at 0' -a append -d 'regions of another file, added or replaced'
complete -c thalia -n '__thalia_at 0' -a compact -d 'without the bytes that appends left unused'
complete -c thalia -n '__thalia_at 0' -a recover -d 'a header that a crash damaged, from its copies'
complete -c thalia -n '__thalia_at 0' -a salvage -d 'what is sound of a damaged file, as a new one'
complete -c thalia -n '__thalia_at 0' -a compress -d 'a whole file in zstd or lz4 frames, still readable'
complete -c thalia -n '__thalia_at 0' -a decompress -d 'the exact file out of such frames'
complete -c thalia -n '__thalia_at 0' -a delta -d 'what changed between two checkpoints, as a file'
complete -c thalia -n '__thalia_at 0' -a resolve -d 'the full file of a delta and its bases'
complete -c thalia -n '__thalia_at 0' -a quantize -d 'weights as codes of a few bits, with the error that it makes'
complete -c thalia -n '__thalia_at 0' -a prune -d 'without dead synapses, or silent neurons'
complete -c thalia -n '__thalia_at 0' -a plot -d 'pictures: growth, weights, diff, chain; SVG or PNG'
complete -c thalia -n '__thalia_at 0' -a report -d 'all about a checkpoint as one web page'
complete -c thalia -n '__thalia_at 0' -a store -d 'directories of training runs: what is saved, what stays'
complete -c thalia -n '__thalia_at 1 store' -a init -d 'a new run'
complete -c thalia -n '__thalia_at 1 store' -a save -d 'a file as a checkpoint, full or a delta'
complete -c thalia -n '__thalia_at 1 store' -a list -d 'checkpoints, gates and pool; or several runs'
complete -c thalia -n '__thalia_at 1 store' -a watch -d 'the same again whenever it changes'
complete -c thalia -n '__thalia_at 1 store' -a latest -d 'path of the newest checkpoint that loads'
complete -c thalia -n '__thalia_at 1 store' -a restore -d 'a checkpoint or a gate as a full file'
complete -c thalia -n '__thalia_at 1 store' -a verify -d 'everything that is damaged or missing'
complete -c thalia -n '__thalia_at 1 store' -a doctor -d 'the same, and with --fix repairs what it can'
complete -c thalia -n '__thalia_at 1 store' -a prune -d 'what retention does not keep goes; why'
complete -c thalia -n '__thalia_at 1 store' -a promote -d 'the best checkpoint as a gate, for good'
complete -c thalia -n '__thalia_at 1 store' -a pool -d 'earlier versions: list, add, rate, draw'
complete -c thalia -n '__thalia_at 1 store' -a transition -d 'from a phase to the next, by a plan'
complete -c thalia -n '__thalia_at 0' -a bench -d 'speed of saving and loading beside disk and memory'
complete -c thalia -n '__thalia_at 0' -a version -d 'versions of library and format, codecs'
complete -c thalia -n '__thalia_at 0' -a help -d 'this list, or one command at length'
complete -c thalia -n '__thalia_of info' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of info' -l metadata -d 'Show all of the metadata'
complete -c thalia -n '__thalia_of ls' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of ls' -s r -l recursive -d 'List the tensors of all regions'
complete -c thalia -n '__thalia_of ls' -l sort -d 'size: the largest first' -x -a 'size name'
complete -c thalia -n '__thalia_of cat' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of cat' -l slice -d 'The part to print, such as '\''0:4,:'\''' -x
complete -c thalia -n '__thalia_of cat' -l format -d 'text (the default), json, npy or raw' -x -a 'text json npy raw'
complete -c thalia -n '__thalia_of cat' -s o -l output -d 'Write to this file, whole or not at all' -r -F
complete -c thalia -n '__thalia_of cat' -l all -d 'Text: every element, also of more than 1000, a row a line'
complete -c thalia -n '__thalia_of cat' -l dense -d 'All elements of sparse tensors, with their zeros: npy always has them, other formats without sparse tensors want this to be asked for'
complete -c thalia -n '__thalia_of stats' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of stats' -l fail-on -d 'Exit with status 1 if there are elements of this kind: nan, infinite, or any of both' -x -a 'nan infinite any'
complete -c thalia -n '__thalia_of verify' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of verify' -l quick -d 'Structure only: no payload is read'
complete -c thalia -n '__thalia_of verify' -l resolve -d 'Of a delta also all that it is based on, and each tensor that comes out'
complete -c thalia -n '__thalia_of convert' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of convert' -l from -d 'Format of IN, where neither content nor name tells it' -x -a 'thalia safetensors thalia-0.1 mckp mst mithril-quantized mithril-orbax gptrs gptrsten entity loom-json pt npz npy gguf onnx thalia-shards'
complete -c thalia -n '__thalia_of convert' -l to -d 'Format of OUT, where its name does not tell it' -x -a 'thalia safetensors thalia-0.1 mckp mst mithril-quantized mithril-orbax gptrs gptrsten entity loom-json pt npz npy gguf onnx'
complete -c thalia -n '__thalia_of convert' -l regions -d 'How tensors become regions: auto (the default: the name up to its first number), none (one region) or DEPTH (that many parts of the name)' -x -a 'auto none'
complete -c thalia -n '__thalia_of convert' -l precision -d 'Types of floating point tensors: keep (the default), fp32, fp16, bf16, mixed, or KEY=PRECISION,..' -x -a 'keep fp32 fp16 bf16 mixed'
complete -c thalia -n '__thalia_of convert' -l dense -d 'All elements of sparse tensors, with their zeros: npy always has them, other formats without sparse tensors want this to be asked for'
complete -c thalia -n '__thalia_of convert' -l lossless -d 'Writes nothing where OUT cannot hold all that IN has'
complete -c thalia -n '__thalia_of convert' -l dequantize -d 'Elements in place of the codes of formats with types of their own, as GGUF'\''s blocks'
complete -c thalia -n '__thalia_of convert' -l shard-size -d 'Of safetensors: bytes of tensors in a file, as 5GB' -x
complete -c thalia -n '__thalia_of convert' -l all-types -d 'Also types that OUT'\''s format has and its program does not read, as f16 in GPTRSCHK'
complete -c thalia -n '__thalia_of migrate' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of migrate' -l to -d 'Version of OUT: 0.1 or 1.0' -x -a '0.1 1.0'
complete -c thalia -n '__thalia_of extract' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of extract' -l regions -d 'Names of regions, or patterns of them, separated by commas' -x -a '(__thalia_names regions 1)'
complete -c thalia -n '__thalia_of merge' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of merge' -s o -l output -d 'Write to this file, whole or not at all' -r -F
complete -c thalia -n '__thalia_of merge' -l prefer -d 'Where files differ: first or last, of those that have it, or the name of one' -r -a 'first last' -F
complete -c thalia -n '__thalia_of diff' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of diff' -l values -d 'Also compare the values of changed tensors: how many differ, how far at most, the root of the mean square, the norm of the difference over that of A (relative), and the cosine between both'
complete -c thalia -n '__thalia_of diff' -l stat -d 'A line for each tensor that differs, with how many of its numbers do and a bar, and the sums'
complete -c thalia -n '__thalia_of diff' -l atol -d 'Differences of at most X do not count' -x
complete -c thalia -n '__thalia_of diff' -l rtol -d 'The same of X times the size of the number in A' -x
complete -c thalia -n '__thalia_of diff' -l all -d 'Show every difference, not the first of long lists'
complete -c thalia -n '__thalia_of log' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of grow' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of grow' -l neurons -d 'How many neurons more' -x
complete -c thalia -n '__thalia_of grow' -l source -d 'Add N inputs from this source instead: columns of its tensors only' -x
complete -c thalia -n '__thalia_of grow' -l population -d 'Which population grows, where the region has several' -x
complete -c thalia -n '__thalia_of grow' -l init -d 'New weights: sparse_random (the default), xavier or uniform' -x -a 'sparse_random xavier uniform'
complete -c thalia -n '__thalia_of grow' -l sparsity -d 'Share of new connections that sparse_random makes' -x
complete -c thalia -n '__thalia_of grow' -l scale -d 'Of new weights: below this, default 0.3' -x
complete -c thalia -n '__thalia_of grow' -l seed -d 'Equal seeds draw equal weights' -x
complete -c thalia -n '__thalia_of grow' -l axes -d 'What a tensor'\''s axes count, where the region does not say: neurons, neurons/K, neurons:POPULATION, source:NAME, or any other word' -x
complete -c thalia -n '__thalia_of grow' -l reason -d 'For the growth history' -x
complete -c thalia -n '__thalia_of set' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of set' -l unset -d 'Remove this member' -x
complete -c thalia -n '__thalia_of set' -l step -d 'Training steps in the header' -x
complete -c thalia -n '__thalia_of rename' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of rm' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of append' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of append' -l regions -d 'Names of regions, or patterns of them, separated by commas' -x -a '(__thalia_names regions 2)'
complete -c thalia -n '__thalia_of compact' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of recover' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of salvage' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of salvage' -l side-file -d 'What convert wrote to a .thalia.meta of the file' -r -F
complete -c thalia -n '__thalia_of compress' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of compress' -l codec -d 'zstd, lz4' -x -a 'zstd lz4'
complete -c thalia -n '__thalia_of compress' -l level -d '1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)' -x
complete -c thalia -n '__thalia_of decompress' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of delta' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of delta' -l threshold -d 'Weights that moved by less than this keep the base'\''s value' -x
complete -c thalia -n '__thalia_of delta' -l low-rank -d 'Store changes of weight matrices as a few products of vectors, where that is smaller: lossy'
complete -c thalia -n '__thalia_of delta' -l bits-per-element -d 'With --low-rank: bits that a matrix may take, an element' -x
complete -c thalia -n '__thalia_of delta' -l max-rank -d 'With --low-rank: products at most, default 64' -x
complete -c thalia -n '__thalia_of delta' -l max-loss -d 'With --low-rank: store a matrix exactly where more than this part of its change is lost' -x
complete -c thalia -n '__thalia_of delta' -l exclude -d 'With --threshold and --low-rank: store tensors that fit exactly' -x
complete -c thalia -n '__thalia_of delta' -l codec -d 'none, zstd, lz4, plane_entropy (small and fast, for floats), packed_exponents (fastest, for floats)' -x -a 'none zstd lz4 plane_entropy packed_exponents'
complete -c thalia -n '__thalia_of delta' -l level -d '1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)' -x
complete -c thalia -n '__thalia_of resolve' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of resolve' -l codec -d 'none, zstd, lz4, plane_entropy (small and fast, for floats), packed_exponents (fastest, for floats)' -x -a 'none zstd lz4 plane_entropy packed_exponents'
complete -c thalia -n '__thalia_of resolve' -l level -d '1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)' -x
complete -c thalia -n '__thalia_of quantize' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of quantize' -l bits -d 'Of a code, 1 to 8, default 8' -x
complete -c thalia -n '__thalia_of quantize' -l group-size -d 'Weights that share a minimum and a scale: a multiple of 8, default 128' -x
complete -c thalia -n '__thalia_of quantize' -l adaptive -d 'Give each group the bits that take most error away'
complete -c thalia -n '__thalia_of quantize' -l sensitivity -d 'Weigh errors: a file with a tensor of the same name and size for each' -r -F
complete -c thalia -n '__thalia_of quantize' -l include -d 'Only tensors that fit, whatever their role' -x
complete -c thalia -n '__thalia_of quantize' -l exclude -d 'Leave tensors that fit: '\''*'\'' any characters, '\''?'\'' one' -x
complete -c thalia -n '__thalia_of quantize' -l min-elements -d 'Leave smaller tensors, default 1024' -x
complete -c thalia -n '__thalia_of quantize' -l max-generations -d 'How often weights may be rounded so, restored and rounded again' -x
complete -c thalia -n '__thalia_of prune' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of prune' -l region -d 'Prune this region, by default all' -x -a '(__thalia_names region 1)'
complete -c thalia -n '__thalia_of prune' -l neurons -d 'Remove up to N silent neurons of the one region instead, the longest silent first' -x
complete -c thalia -n '__thalia_of prune' -l threshold -d 'Absolute values of weights below it are weak' -x
complete -c thalia -n '__thalia_of prune' -l min-age -d 'Leave synapses that are younger' -x
complete -c thalia -n '__thalia_of prune' -l importance-window -d 'Steps over which importance must have been tracked, and since the task changed' -x
complete -c thalia -n '__thalia_of prune' -l importance -d 'Importance below it is none' -x
complete -c thalia -n '__thalia_of prune' -l protect -d 'Leave this region, or this matrix, REGION/weights.NAME' -x
complete -c thalia -n '__thalia_of prune' -l min-silent -d 'With --neurons: those are silent that have not fired for more' -x
complete -c thalia -n '__thalia_of prune' -l strong -d 'With --neurons: leave those with a weight of this size or more' -x
complete -c thalia -n '__thalia_of prune' -l axes -d 'What a tensor'\''s axes count, where the region does not say: neurons, neurons/K, neurons:POPULATION, source:NAME, or any other word' -x
complete -c thalia -n '__thalia_of plot' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of plot' -l most -d 'Tensors that are drawn at most: of weights the largest, 24 by itself' -x
complete -c thalia -n '__thalia_of plot' -s o -l output -d 'Write to this file, whole or not at all' -r -F
complete -c thalia -n '__thalia_of report' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of report' -s o -l output -d 'Write to this file, whole or not at all' -r -F
complete -c thalia -n '__thalia_of store' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store init"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store init"' -l new -d 'Make it in this folder, named by time and seed'
complete -c thalia -n '__thalia_of "store init"' -l preset -d 'hydra: three phases with gates, a pool, and keys that every checkpoint has' -x -a 'hydra'
complete -c thalia -n '__thalia_of "store init"' -l phases -d 'Phases in their order' -x
complete -c thalia -n '__thalia_of "store init"' -l metric -d 'What the best checkpoint of each phase goes by, and which of two values is better' -x
complete -c thalia -n '__thalia_of "store init"' -l extension -d 'Of the checkpoints' -x
complete -c thalia -n '__thalia_of "store init"' -l seed -d 'With --new: the run'\''s seed, whose last digits its name has' -x
complete -c thalia -n '__thalia_of "store init"' -l format -d 'Of the configuration: toml, the default, or json' -x -a 'toml json'
complete -c thalia -n '__thalia_of "store save"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store save"' -l phase -d 'Its phase' -x -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_of "store save"' -l step -d 'Its training step' -x
complete -c thalia -n '__thalia_of "store save"' -l metric -d 'Its value of the phase'\''s metric' -x
complete -c thalia -n '__thalia_of "store save"' -l key -d 'A key that its record has, of a file that is not looked into, for those that the run requires' -x
complete -c thalia -n '__thalia_of "store list"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store list"' -l phase -d 'This phase alone' -x -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_of "store watch"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store watch"' -l phase -d 'This phase alone' -x -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_of "store watch"' -l interval -d 'How often to look' -x
complete -c thalia -n '__thalia_of "store latest"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store latest"' -l phase -d 'Of this phase' -x -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_of "store latest"' -l best -d 'The best one instead, and no other'
complete -c thalia -n '__thalia_of "store restore"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store restore"' -l phase -d 'Of this phase' -x -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_of "store restore"' -l step -d 'That of this step, and no other' -x
complete -c thalia -n '__thalia_of "store restore"' -l gate -d 'This gate instead' -x -a '(__thalia_names gate 1)'
complete -c thalia -n '__thalia_of "store verify"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store verify"' -l phase -d 'This phase alone, without gates and pool' -x -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_of "store verify"' -l quick -d 'Names, links and texts only: no checkpoint is read'
complete -c thalia -n '__thalia_of "store doctor"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store doctor"' -l phase -d 'This phase alone, without gates and pool' -x -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_of "store doctor"' -l quick -d 'Names, links and texts only: no checkpoint is read'
complete -c thalia -n '__thalia_of "store doctor"' -l fix -d 'Repair what can be repaired'
complete -c thalia -n '__thalia_of "store prune"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store prune"' -l phase -d 'This phase alone' -x -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_of "store prune"' -l dry-run -d 'Say what would be done, and change nothing'
complete -c thalia -n '__thalia_of "store promote"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store promote"' -l phase -d 'Of this phase' -x -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_of "store promote"' -l step -d 'That of this step' -x
complete -c thalia -n '__thalia_of "store promote"' -l gate -d 'Under this name' -x -a '(__thalia_names gate 1)'
complete -c thalia -n '__thalia_of "store pool"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store pool"' -l phase -d 'Of add: its phase' -x -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_of "store pool"' -l step -d 'Of add: the checkpoint'\''s step' -x
complete -c thalia -n '__thalia_of "store pool"' -l mu -d 'The estimate of the model'\''s skill, as OpenSkill has it' -x
complete -c thalia -n '__thalia_of "store pool"' -l sigma -d 'How uncertain that is' -x
complete -c thalia -n '__thalia_of "store pool"' -l games -d 'Of rate: games that it has played' -x
complete -c thalia -n '__thalia_of "store pool"' -l win-rate -d 'Of rate: the share that it won, 0 to 1' -x
complete -c thalia -n '__thalia_of "store pool"' -l seed -d 'Of draw: the run'\''s seed' -x
complete -c thalia -n '__thalia_of "store pool"' -l index -d 'Of draw: the number of the game' -x
complete -c thalia -n '__thalia_of "store transition"' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of "store transition"' -l seed -d 'The run'\''s seed, of which that of the phase is made' -x
complete -c thalia -n '__thalia_of bench' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of bench' -l dir -d 'The folder to try, on the disk in question (default .)' -x -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_of bench' -l size -d 'Bytes to save, as 512MiB or 4GiB (default 1GiB)' -x -a '256MiB 1GiB 4GiB'
complete -c thalia -n '__thalia_of bench' -l rounds -d 'Runs of each (default 3)' -x
complete -c thalia -n '__thalia_of version' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of help' -s h -l help -d 'Print this and leave'
complete -c thalia -n '__thalia_of info ls stats verify convert migrate extract merge diff log grow set rename rm append compact recover salvage compress decompress delta resolve quantize prune store "store init" "store save" "store list" "store watch" "store latest" "store restore" "store verify" "store doctor" "store prune" "store promote" "store pool" "store transition" bench version help' -l json -d 'Print a JSON value, always complete: sizes in bytes, times in seconds, names as they are'
complete -c thalia -n '__thalia_of cat convert migrate extract merge compact salvage compress decompress delta resolve quantize prune plot report "store save" "store restore" "store promote" "store transition"' -l force -d 'Replace a file that is there already, in one step'
complete -c thalia -n '__thalia_of stats verify convert extract merge diff grow rename rm append compact recover salvage compress decompress delta resolve quantize prune plot report "store verify" "store doctor" bench' -l threads -d 'Threads that do the work' -x
complete -c thalia -n '__thalia_of convert migrate extract merge grow set rename rm append compact salvage delta resolve quantize prune' -l reproducible -d 'Equal input gives equal bytes: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0'
complete -c thalia -n '__thalia_of grow set rename rm append compact recover "store save" "store doctor" "store prune" "store promote" "store pool" "store transition"' -l wait -d 'Wait for the process that changes the file, or the run, now'
complete -c thalia -n '__thalia_of info ls cat stats verify convert migrate extract merge diff log grow set rename rm append compact recover salvage compress decompress delta resolve quantize prune plot report store "store init" "store save" "store list" "store watch" "store latest" "store restore" "store verify" "store doctor" "store prune" "store promote" "store pool" "store transition" bench version help' -l color -d 'auto, always or never' -x -a 'auto always never'
complete -c thalia -n '__thalia_of info ls cat stats verify convert migrate extract merge diff log grow set rename rm append compact recover salvage compress decompress delta resolve quantize prune plot report store "store init" "store save" "store list" "store watch" "store latest" "store restore" "store verify" "store doctor" "store prune" "store promote" "store pool" "store transition" bench version help' -l no-pager -d 'Print what is longer than the screen without $THALIA_PAGER, $PAGER or less'
complete -c thalia -n '__thalia_of info ls cat stats verify convert migrate extract merge diff log grow set rename rm append compact recover salvage compress decompress delta resolve quantize prune plot report "store save" "store latest" "store restore" "store verify" "store doctor" "store prune" "store promote" "store pool" "store transition"' -l safe -d 'Copy what is read, and map nothing: for files that others change meanwhile, and disks that fail'
complete -c thalia -n '__thalia_of info ls cat stats verify convert migrate extract merge diff log grow set rename rm append compact recover salvage compress decompress delta resolve quantize prune plot report "store save" "store latest" "store restore" "store verify" "store doctor" "store prune" "store promote" "store pool" "store transition"' -l max-memory -d 'What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine' -x
complete -c thalia -n '__thalia_of info ls cat stats verify convert diff delta plot report' -l old -d 'Take files that the programs of their formats no longer do, as GPTRSCHK 1'
complete -c thalia -n '__thalia_of cat stats verify convert extract diff log delta resolve prune plot report' -l search -d 'Look here for a base that is not where its delta says' -x -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_of cat stats verify convert extract diff log delta resolve prune plot report' -l absolute-bases -d 'Open a base whose delta names it by an absolute path'
complete -c thalia -n '__thalia_of convert extract merge quantize prune' -l codec -d 'none, zstd, lz4, plane_entropy (small and fast, for floats), packed_exponents (fastest, for floats), or auto: what makes the save faster' -x -a 'none zstd lz4 plane_entropy packed_exponents auto'
complete -c thalia -n '__thalia_of convert extract merge quantize prune' -l level -d '1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)' -x
complete -c thalia -n '__thalia_of convert extract merge quantize prune' -l checksum -d 'none, sha256, crc32 or block_tree (the default)' -x -a 'none sha256 crc32 block_tree'
complete -c thalia -n '__thalia_of convert extract merge quantize prune' -l leaves -d 'Digests of the block tree, and of MCKP: xxh3_128 (the default), or sha256 against tampering' -x -a 'xxh3_128 sha256'
complete -c thalia -n '__thalia_of convert extract merge quantize prune' -l sha256 -d 'Also write OUT.sha256, for sha256sum -c'
complete -c thalia -n '__thalia_of convert extract merge quantize prune' -l max-header -d 'Bytes that the header of a safetensors input may have (default 100000000)' -x
complete -c thalia -n '__thalia_of "store init" "store prune"' -l keep -d 'Keep the N newest' -x
complete -c thalia -n '__thalia_of "store init" "store prune"' -l every-steps -d 'Keep those whose step is a multiple of N' -x
complete -c thalia -n '__thalia_of "store init" "store prune"' -l every -d 'Keep the first one saved in each such span: 30min, 12h, 7d' -x
complete -c thalia -n '__thalia_of "store init" "store prune"' -l keep-best -d 'Keep the K with the best metrics' -x
complete -c thalia -n '__thalia_of "store init" "store prune"' -l max-age -d 'Remove what is older' -x
complete -c thalia -n '__thalia_of "store init" "store prune"' -l max-bytes -d 'Remove the oldest until the others fit into this, as 20GiB' -x
complete -c thalia -n '__thalia_of "store init" "store prune"' -l squash -d 'A delta that stays becomes a full file, rather than keep what it is based on'
complete -c thalia -n '__thalia_at 1 info' -F
complete -c thalia -n '__thalia_at 1 ls' -F
complete -c thalia -n '__thalia_at 2+ ls' -a '(__thalia_names region 1) (__thalia_names tensor 1)'
complete -c thalia -n '__thalia_at 1 cat' -F
complete -c thalia -n '__thalia_at 2 cat' -a '(__thalia_names tensor 1)'
complete -c thalia -n '__thalia_at 1 stats' -F
complete -c thalia -n '__thalia_at 2+ stats' -a '(__thalia_names tensor 1)'
complete -c thalia -n '__thalia_at 1+ verify' -F
complete -c thalia -n '__thalia_at 1 convert' -F
complete -c thalia -n '__thalia_at 2 convert' -F
complete -c thalia -n '__thalia_at 1 migrate' -F
complete -c thalia -n '__thalia_at 2 migrate' -F
complete -c thalia -n '__thalia_at 1 extract' -F
complete -c thalia -n '__thalia_at 2 extract' -F
complete -c thalia -n '__thalia_at 1+ merge' -F
complete -c thalia -n '__thalia_at 1 diff' -F
complete -c thalia -n '__thalia_at 2 diff' -F
complete -c thalia -n '__thalia_at 3+ diff' -a '(__thalia_names tensor 1)'
complete -c thalia -n '__thalia_at 1 log' -F
complete -c thalia -n '__thalia_at 1 grow' -F
complete -c thalia -n '__thalia_at 2 grow' -a '(__thalia_names region 1)'
complete -c thalia -n '__thalia_at 1 set' -F
complete -c thalia -n '__thalia_at 1 rename' -F
complete -c thalia -n '__thalia_at 2 rename' -a '(__thalia_names tensor 1)'
complete -c thalia -n '__thalia_at 1 rm' -F
complete -c thalia -n '__thalia_at 2+ rm' -a '(__thalia_names tensor 1)'
complete -c thalia -n '__thalia_at 1 append' -F
complete -c thalia -n '__thalia_at 2 append' -F
complete -c thalia -n '__thalia_at 1 compact' -F
complete -c thalia -n '__thalia_at 2 compact' -F
complete -c thalia -n '__thalia_at 1 recover' -F
complete -c thalia -n '__thalia_at 1 salvage' -F
complete -c thalia -n '__thalia_at 2 salvage' -F
complete -c thalia -n '__thalia_at 1 compress' -F
complete -c thalia -n '__thalia_at 2 compress' -F
complete -c thalia -n '__thalia_at 1 decompress' -F
complete -c thalia -n '__thalia_at 2 decompress' -F
complete -c thalia -n '__thalia_at 1 delta' -F
complete -c thalia -n '__thalia_at 2 delta' -F
complete -c thalia -n '__thalia_at 3 delta' -F
complete -c thalia -n '__thalia_at 1 resolve' -F
complete -c thalia -n '__thalia_at 2 resolve' -F
complete -c thalia -n '__thalia_at 1 quantize' -F
complete -c thalia -n '__thalia_at 2 quantize' -F
complete -c thalia -n '__thalia_at 1 prune' -F
complete -c thalia -n '__thalia_at 2 prune' -F
complete -c thalia -n '__thalia_at 1 plot' -a 'growth weights diff chain'
complete -c thalia -n '__thalia_at 2+ plot' -F
complete -c thalia -n '__thalia_at 1 report' -F
complete -c thalia -n '__thalia_at 2 report' -F
complete -c thalia -n '__thalia_at 1 "store init"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 1 "store save"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 2 "store save"' -F
complete -c thalia -n '__thalia_at 1 "store list"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 1 "store watch"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 1 "store latest"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 1 "store restore"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 2 "store restore"' -F
complete -c thalia -n '__thalia_at 1 "store verify"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 1 "store doctor"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 1 "store prune"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 1 "store promote"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 1 "store pool"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 2 "store pool"' -a 'list add rate draw'
complete -c thalia -n '__thalia_at 1 "store transition"' -a '(__fish_complete_directories)'
complete -c thalia -n '__thalia_at 2 "store transition"' -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_at 3 "store transition"' -a '(__thalia_names phase 1)'
complete -c thalia -n '__thalia_at 1 help' -a 'info ls cat stats verify convert migrate extract merge diff log grow set rename rm append compact recover salvage compress decompress delta resolve quantize prune plot report store bench version help'
complete -c thalia -n '__thalia_at 2 help' -a 'init save list watch latest restore verify doctor prune promote pool transition'
# } made by tools/documents.py
