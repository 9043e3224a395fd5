#compdef thalia
# zsh completion for thalia

# made by tools/documents.py {
_thalia_commands=(
  'info:what it is: parameters, dtypes, steps, sizes, metadata'
  'ls:regions, all tensors, or those that patterns fit'
  'cat:tensors or slices of them, as text, json, npy or raw'
  'stats:range, moments, zeros and NaN of each tensor'
  'verify:everything that can be wrong, every finding named'
  'convert:from one format to another'
  'migrate:to another version of the format, 0.1 or 1.0'
  'extract:some regions into a file of their own'
  'merge:several checkpoints in one, conflicts named'
  'diff:what changed; with --values by how much'
  'log:a delta and all that it is based on: steps, times, sizes'
  'grow:neurons added to a region, in place'
  'set:members of the metadata, in place'
  'rename:another name for a tensor, in place'
  'rm:regions and tensors left out, in place'
  'append:regions of another file, added or replaced'
  'compact:without the bytes that appends left unused'
  'recover:a header that a crash damaged, from its copies'
  'salvage:what is sound of a damaged file, as a new one'
  'compress:a whole file in zstd or lz4 frames, still readable'
  'decompress:the exact file out of such frames'
  'delta:what changed between two checkpoints, as a file'
  'resolve:the full file of a delta and its bases'
  'quantize:weights as codes of a few bits, with the error that it makes'
  'prune:without dead synapses, or silent neurons'
  'plot:pictures: growth, weights, diff, chain; SVG or PNG'
  'report:all about a checkpoint as one web page'
  'store:directories of training runs: what is saved, what stays'
  'bench:speed of saving and loading beside disk and memory'
  'version:versions of library and format, codecs'
  'help:this list, or one command at length'
)
_thalia_specs() {
  case $1 in
    info)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--metadata)--metadata[Show all of the metadata]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '(--old)--old[Take files that the programs of their formats no longer do, as GPTRSCHK 1]'
        '1:FILE:{_thalia_offer @file}'
      )
      ;;
    ls)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(-r --recursive)-r[List the tensors of all regions]'
        '(-r --recursive)--recursive[List the tensors of all regions]'
        '(--sort)--sort=[size\: the largest first]:BY:{_thalia_offer size name}'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '(--old)--old[Take files that the programs of their formats no longer do, as GPTRSCHK 1]'
        '1:FILE:{_thalia_offer @file}'
        '*:PATTERN:{_thalia_offer @region\:1 @tensor\:1}'
      )
      ;;
    cat)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--slice)--slice=[The part to print, such as '\''0\:4,\:'\'']:SLICE:{_thalia_offer }'
        '(--format)--format=[text (the default), json, npy or raw]:FORMAT:{_thalia_offer text json npy raw}'
        '(-o --output)-o+[Write to this file, whole or not at all]:OUT:{_thalia_offer @file}'
        '(-o --output)--output=[Write to this file, whole or not at all]:OUT:{_thalia_offer @file}'
        '(--all)--all[Text\: every element, also of more than 1000, a row a line]'
        '(--dense)--dense[All elements of sparse tensors, with their zeros\: npy always has them, other formats without sparse tensors want this to be asked for]'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '(--old)--old[Take files that the programs of their formats no longer do, as GPTRSCHK 1]'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '1:FILE:{_thalia_offer @file}'
        '2:TENSOR:{_thalia_offer @tensor\:1}'
      )
      ;;
    stats)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--fail-on)--fail-on=[Exit with status 1 if there are elements of this kind\: nan, infinite, or any of both]:KIND:{_thalia_offer nan infinite any}'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '(--old)--old[Take files that the programs of their formats no longer do, as GPTRSCHK 1]'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '1:FILE:{_thalia_offer @file}'
        '*:PATTERN:{_thalia_offer @tensor\:1}'
      )
      ;;
    verify)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--quick)--quick[Structure only\: no payload is read]'
        '(--resolve)--resolve[Of a delta also all that it is based on, and each tensor that comes out]'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '(--old)--old[Take files that the programs of their formats no longer do, as GPTRSCHK 1]'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '*:FILE:{_thalia_offer @file}'
      )
      ;;
    convert)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--from)--from=[Format of IN, where neither content nor name tells it]:FORMAT:{_thalia_offer thalia safetensors thalia-0.1 mckp mst mithril-quantized mithril-orbax gptrs gptrsten entity loom-json pt npz npy gguf onnx thalia-shards}'
        '(--to)--to=[Format of OUT, where its name does not tell it]:FORMAT:{_thalia_offer thalia safetensors thalia-0.1 mckp mst mithril-quantized mithril-orbax gptrs gptrsten entity loom-json pt npz npy gguf onnx}'
        '(--regions)--regions=[How tensors become regions\: auto (the default\: the name up to its first number), none (one region) or DEPTH (that many parts of the name)]:HOW:{_thalia_offer auto none}'
        '(--precision)--precision=[Types of floating point tensors\: keep (the default), fp32, fp16, bf16, mixed, or KEY=PRECISION,..]:POLICY:{_thalia_offer keep fp32 fp16 bf16 mixed}'
        '(--dense)--dense[All elements of sparse tensors, with their zeros\: npy always has them, other formats without sparse tensors want this to be asked for]'
        '(--lossless)--lossless[Writes nothing where OUT cannot hold all that IN has]'
        '(--dequantize)--dequantize[Elements in place of the codes of formats with types of their own, as GGUF'\''s blocks]'
        '(--shard-size)--shard-size=[Of safetensors\: bytes of tensors in a file, as 5GB]:SIZE:{_thalia_offer }'
        '(--all-types)--all-types[Also types that OUT'\''s format has and its program does not read, as f16 in GPTRSCHK]'
        '(--codec)--codec=[none, zstd, lz4, plane_entropy (small and fast, for floats), packed_exponents (fastest, for floats), or auto\: what makes the save faster]:CODEC:{_thalia_offer none zstd lz4 plane_entropy packed_exponents auto}'
        '(--level)--level=[1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)]:N:{_thalia_offer }'
        '(--checksum)--checksum=[none, sha256, crc32 or block_tree (the default)]:TYPE:{_thalia_offer none sha256 crc32 block_tree}'
        '(--leaves)--leaves=[Digests of the block tree, and of MCKP\: xxh3_128 (the default), or sha256 against tampering]:KIND:{_thalia_offer xxh3_128 sha256}'
        '(--sha256)--sha256[Also write OUT.sha256, for sha256sum -c]'
        '(--max-header)--max-header=[Bytes that the header of a safetensors input may have (default 100000000)]:BYTES:{_thalia_offer }'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '(--old)--old[Take files that the programs of their formats no longer do, as GPTRSCHK 1]'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '1:IN:{_thalia_offer @file}'
        '2:OUT:{_thalia_offer @file}'
      )
      ;;
    migrate)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--to)--to=[Version of OUT\: 0.1 or 1.0]:VERSION:{_thalia_offer 0.1 1.0}'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:IN:{_thalia_offer @file}'
        '2:OUT:{_thalia_offer @file}'
      )
      ;;
    extract)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--regions)--regions=[Names of regions, or patterns of them, separated by commas]:A,B:{_thalia_offer @regions\:1}'
        '(--codec)--codec=[none, zstd, lz4, plane_entropy (small and fast, for floats), packed_exponents (fastest, for floats), or auto\: what makes the save faster]:CODEC:{_thalia_offer none zstd lz4 plane_entropy packed_exponents auto}'
        '(--level)--level=[1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)]:N:{_thalia_offer }'
        '(--checksum)--checksum=[none, sha256, crc32 or block_tree (the default)]:TYPE:{_thalia_offer none sha256 crc32 block_tree}'
        '(--leaves)--leaves=[Digests of the block tree, and of MCKP\: xxh3_128 (the default), or sha256 against tampering]:KIND:{_thalia_offer xxh3_128 sha256}'
        '(--sha256)--sha256[Also write OUT.sha256, for sha256sum -c]'
        '(--max-header)--max-header=[Bytes that the header of a safetensors input may have (default 100000000)]:BYTES:{_thalia_offer }'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '1:FILE:{_thalia_offer @file}'
        '2:OUT:{_thalia_offer @file}'
      )
      ;;
    merge)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(-o --output)-o+[Write to this file, whole or not at all]:OUT:{_thalia_offer @file}'
        '(-o --output)--output=[Write to this file, whole or not at all]:OUT:{_thalia_offer @file}'
        '(--prefer)--prefer=[Where files differ\: first or last, of those that have it, or the name of one]:WHICH:{_thalia_offer first last @file}'
        '(--codec)--codec=[none, zstd, lz4, plane_entropy (small and fast, for floats), packed_exponents (fastest, for floats), or auto\: what makes the save faster]:CODEC:{_thalia_offer none zstd lz4 plane_entropy packed_exponents auto}'
        '(--level)--level=[1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)]:N:{_thalia_offer }'
        '(--checksum)--checksum=[none, sha256, crc32 or block_tree (the default)]:TYPE:{_thalia_offer none sha256 crc32 block_tree}'
        '(--leaves)--leaves=[Digests of the block tree, and of MCKP\: xxh3_128 (the default), or sha256 against tampering]:KIND:{_thalia_offer xxh3_128 sha256}'
        '(--sha256)--sha256[Also write OUT.sha256, for sha256sum -c]'
        '(--max-header)--max-header=[Bytes that the header of a safetensors input may have (default 100000000)]:BYTES:{_thalia_offer }'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '*:FILES:{_thalia_offer @file}'
      )
      ;;
    diff)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--values)--values[Also compare the values of changed tensors\: how many differ, how far at most, the root of the mean square, the norm of the difference over that of A (relative), and the cosine between both]'
        '(--stat)--stat[A line for each tensor that differs, with how many of its numbers do and a bar, and the sums]'
        '(--atol)--atol=[Differences of at most X do not count]:X:{_thalia_offer }'
        '(--rtol)--rtol=[The same of X times the size of the number in A]:X:{_thalia_offer }'
        '(--all)--all[Show every difference, not the first of long lists]'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '(--old)--old[Take files that the programs of their formats no longer do, as GPTRSCHK 1]'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '1:A:{_thalia_offer @file}'
        '2:B:{_thalia_offer @file}'
        '*:PATTERN:{_thalia_offer @tensor\:1}'
      )
      ;;
    log)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '1:FILE:{_thalia_offer @file}'
      )
      ;;
    grow)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--neurons)--neurons=[How many neurons more]:N:{_thalia_offer }'
        '(--source)--source=[Add N inputs from this source instead\: columns of its tensors only]:NAME:{_thalia_offer }'
        '(--population)--population=[Which population grows, where the region has several]:NAME:{_thalia_offer }'
        '(--init)--init=[New weights\: sparse_random (the default), xavier or uniform]:NAME:{_thalia_offer sparse_random xavier uniform}'
        '(--sparsity)--sparsity=[Share of new connections that sparse_random makes]:S:{_thalia_offer }'
        '(--scale)--scale=[Of new weights\: below this, default 0.3]:X:{_thalia_offer }'
        '(--seed)--seed=[Equal seeds draw equal weights]:K:{_thalia_offer }'
        '*--axes=[What a tensor'\''s axes count, where the region does not say\: neurons, neurons/K, neurons\:POPULATION, source\:NAME, or any other word]:TENSOR=AXIS,...:{_thalia_offer }'
        '(--reason)--reason=[For the growth history]:TEXT:{_thalia_offer }'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:FILE:{_thalia_offer @file}'
        '2:REGION:{_thalia_offer @region\:1}'
      )
      ;;
    set)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '*--unset=[Remove this member]:KEY:{_thalia_offer }'
        '(--step)--step=[Training steps in the header]:N:{_thalia_offer }'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:FILE:{_thalia_offer @file}'
        '*:KEY=VALUE:{_thalia_offer }'
      )
      ;;
    rename)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:FILE:{_thalia_offer @file}'
        '2:TENSOR:{_thalia_offer @tensor\:1}'
        '3:NAME:{_thalia_offer }'
      )
      ;;
    rm)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:FILE:{_thalia_offer @file}'
        '*:PATTERN:{_thalia_offer @tensor\:1}'
      )
      ;;
    append)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--regions)--regions=[Names of regions, or patterns of them, separated by commas]:A,B:{_thalia_offer @regions\:2}'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:FILE:{_thalia_offer @file}'
        '2:FROM:{_thalia_offer @file}'
      )
      ;;
    compact)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:FILE:{_thalia_offer @file}'
        '2:OUT:{_thalia_offer @file}'
      )
      ;;
    recover)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:FILE:{_thalia_offer @file}'
      )
      ;;
    salvage)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--side-file)--side-file=[What convert wrote to a .thalia.meta of the file]:META:{_thalia_offer @file}'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:IN:{_thalia_offer @file}'
        '2:OUT:{_thalia_offer @file}'
      )
      ;;
    compress)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--codec)--codec=[zstd, lz4]:CODEC:{_thalia_offer zstd lz4}'
        '(--level)--level=[1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)]:N:{_thalia_offer }'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:IN:{_thalia_offer @file}'
        '2:OUT:{_thalia_offer @file}'
      )
      ;;
    decompress)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:IN:{_thalia_offer @file}'
        '2:OUT:{_thalia_offer @file}'
      )
      ;;
    delta)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--threshold)--threshold=[Weights that moved by less than this keep the base'\''s value]:X:{_thalia_offer }'
        '(--low-rank)--low-rank[Store changes of weight matrices as a few products of vectors, where that is smaller\: lossy]'
        '(--bits-per-element)--bits-per-element=[With --low-rank\: bits that a matrix may take, an element]:B:{_thalia_offer }'
        '(--max-rank)--max-rank=[With --low-rank\: products at most, default 64]:K:{_thalia_offer }'
        '(--max-loss)--max-loss=[With --low-rank\: store a matrix exactly where more than this part of its change is lost]:X:{_thalia_offer }'
        '*--exclude=[With --threshold and --low-rank\: store tensors that fit exactly]:PATTERN:{_thalia_offer }'
        '(--codec)--codec=[none, zstd, lz4, plane_entropy (small and fast, for floats), packed_exponents (fastest, for floats)]:CODEC:{_thalia_offer none zstd lz4 plane_entropy packed_exponents}'
        '(--level)--level=[1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)]:N:{_thalia_offer }'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '(--old)--old[Take files that the programs of their formats no longer do, as GPTRSCHK 1]'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '1:BASE:{_thalia_offer @file}'
        '2:NEW:{_thalia_offer @file}'
        '3:OUT:{_thalia_offer @file}'
      )
      ;;
    resolve)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--codec)--codec=[none, zstd, lz4, plane_entropy (small and fast, for floats), packed_exponents (fastest, for floats)]:CODEC:{_thalia_offer none zstd lz4 plane_entropy packed_exponents}'
        '(--level)--level=[1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)]:N:{_thalia_offer }'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '1:DELTA:{_thalia_offer @file}'
        '2:OUT:{_thalia_offer @file}'
      )
      ;;
    quantize)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--bits)--bits=[Of a code, 1 to 8, default 8]:B:{_thalia_offer }'
        '(--group-size)--group-size=[Weights that share a minimum and a scale\: a multiple of 8, default 128]:N:{_thalia_offer }'
        '(--adaptive)--adaptive[Give each group the bits that take most error away]'
        '(--sensitivity)--sensitivity=[Weigh errors\: a file with a tensor of the same name and size for each]:FILE:{_thalia_offer @file}'
        '*--include=[Only tensors that fit, whatever their role]:PATTERN:{_thalia_offer }'
        '*--exclude=[Leave tensors that fit\: '\''*'\'' any characters, '\''?'\'' one]:PATTERN:{_thalia_offer }'
        '(--min-elements)--min-elements=[Leave smaller tensors, default 1024]:N:{_thalia_offer }'
        '(--max-generations)--max-generations=[How often weights may be rounded so, restored and rounded again]:N:{_thalia_offer }'
        '(--codec)--codec=[none, zstd, lz4, plane_entropy (small and fast, for floats), packed_exponents (fastest, for floats), or auto\: what makes the save faster]:CODEC:{_thalia_offer none zstd lz4 plane_entropy packed_exponents auto}'
        '(--level)--level=[1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)]:N:{_thalia_offer }'
        '(--checksum)--checksum=[none, sha256, crc32 or block_tree (the default)]:TYPE:{_thalia_offer none sha256 crc32 block_tree}'
        '(--leaves)--leaves=[Digests of the block tree, and of MCKP\: xxh3_128 (the default), or sha256 against tampering]:KIND:{_thalia_offer xxh3_128 sha256}'
        '(--sha256)--sha256[Also write OUT.sha256, for sha256sum -c]'
        '(--max-header)--max-header=[Bytes that the header of a safetensors input may have (default 100000000)]:BYTES:{_thalia_offer }'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:IN:{_thalia_offer @file}'
        '2:OUT:{_thalia_offer @file}'
      )
      ;;
    prune)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '*--region=[Prune this region, by default all]:R:{_thalia_offer @region\:1}'
        '(--neurons)--neurons=[Remove up to N silent neurons of the one region instead, the longest silent first]:N:{_thalia_offer }'
        '(--threshold)--threshold=[Absolute values of weights below it are weak]:X:{_thalia_offer }'
        '(--min-age)--min-age=[Leave synapses that are younger]:STEPS:{_thalia_offer }'
        '(--importance-window)--importance-window=[Steps over which importance must have been tracked, and since the task changed]:STEPS:{_thalia_offer }'
        '(--importance)--importance=[Importance below it is none]:X:{_thalia_offer }'
        '*--protect=[Leave this region, or this matrix, REGION/weights.NAME]:NAME:{_thalia_offer }'
        '(--min-silent)--min-silent=[With --neurons\: those are silent that have not fired for more]:STEPS:{_thalia_offer }'
        '(--strong)--strong=[With --neurons\: leave those with a weight of this size or more]:X:{_thalia_offer }'
        '*--axes=[What a tensor'\''s axes count, where the region does not say\: neurons, neurons/K, neurons\:POPULATION, source\:NAME, or any other word]:TENSOR=AXIS,...:{_thalia_offer }'
        '(--codec)--codec=[none, zstd, lz4, plane_entropy (small and fast, for floats), packed_exponents (fastest, for floats), or auto\: what makes the save faster]:CODEC:{_thalia_offer none zstd lz4 plane_entropy packed_exponents auto}'
        '(--level)--level=[1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)]:N:{_thalia_offer }'
        '(--checksum)--checksum=[none, sha256, crc32 or block_tree (the default)]:TYPE:{_thalia_offer none sha256 crc32 block_tree}'
        '(--leaves)--leaves=[Digests of the block tree, and of MCKP\: xxh3_128 (the default), or sha256 against tampering]:KIND:{_thalia_offer xxh3_128 sha256}'
        '(--sha256)--sha256[Also write OUT.sha256, for sha256sum -c]'
        '(--max-header)--max-header=[Bytes that the header of a safetensors input may have (default 100000000)]:BYTES:{_thalia_offer }'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--reproducible)--reproducible[Equal input gives equal bytes\: the file says that it was saved at SOURCE_DATE_EPOCH, else at 0]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '1:IN:{_thalia_offer @file}'
        '2:OUT:{_thalia_offer @file}'
      )
      ;;
    plot)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--most)--most=[Tensors that are drawn at most\: of weights the largest, 24 by itself]:N:{_thalia_offer }'
        '(-o --output)-o+[Write to this file, whole or not at all]:OUT:{_thalia_offer @file}'
        '(-o --output)--output=[Write to this file, whole or not at all]:OUT:{_thalia_offer @file}'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '(--old)--old[Take files that the programs of their formats no longer do, as GPTRSCHK 1]'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '1:KIND:{_thalia_offer growth weights diff chain}'
        '*:FILE:{_thalia_offer @file}'
      )
      ;;
    report)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(-o --output)-o+[Write to this file, whole or not at all]:OUT.html:{_thalia_offer @file}'
        '(-o --output)--output=[Write to this file, whole or not at all]:OUT.html:{_thalia_offer @file}'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '(--old)--old[Take files that the programs of their formats no longer do, as GPTRSCHK 1]'
        '*--search=[Look here for a base that is not where its delta says]:FOLDER:{_thalia_offer @folder}'
        '(--absolute-bases)--absolute-bases[Open a base whose delta names it by an absolute path]'
        '1:FILE:{_thalia_offer @file}'
        '2:BASE:{_thalia_offer @file}'
      )
      ;;
    store)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '1:COMMAND:{_thalia_offer init save list watch latest restore verify doctor prune promote pool transition}'
      )
      ;;
    'store init')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--new)--new[Make it in this folder, named by time and seed]'
        '(--preset)--preset=[hydra\: three phases with gates, a pool, and keys that every checkpoint has]:NAME:{_thalia_offer hydra}'
        '*--phases=[Phases in their order]:A,B:{_thalia_offer }'
        '(--metric)--metric=[What the best checkpoint of each phase goes by, and which of two values is better]:NAME\:min|max:{_thalia_offer }'
        '(--extension)--extension=[Of the checkpoints]:EXT:{_thalia_offer }'
        '(--seed)--seed=[With --new\: the run'\''s seed, whose last digits its name has]:S:{_thalia_offer }'
        '(--format)--format=[Of the configuration\: toml, the default, or json]:FORMAT:{_thalia_offer toml json}'
        '(--keep)--keep=[Keep the N newest]:N:{_thalia_offer }'
        '(--every-steps)--every-steps=[Keep those whose step is a multiple of N]:N:{_thalia_offer }'
        '(--every)--every=[Keep the first one saved in each such span\: 30min, 12h, 7d]:DURATION:{_thalia_offer }'
        '(--keep-best)--keep-best=[Keep the K with the best metrics]:K:{_thalia_offer }'
        '(--max-age)--max-age=[Remove what is older]:DURATION:{_thalia_offer }'
        '(--max-bytes)--max-bytes=[Remove the oldest until the others fit into this, as 20GiB]:SIZE:{_thalia_offer }'
        '(--squash)--squash[A delta that stays becomes a full file, rather than keep what it is based on]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '1:RUN:{_thalia_offer @folder}'
      )
      ;;
    'store save')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--phase)--phase=[Its phase]:P:{_thalia_offer @phase\:1}'
        '(--step)--step=[Its training step]:N:{_thalia_offer }'
        '(--metric)--metric=[Its value of the phase'\''s metric]:M:{_thalia_offer }'
        '*--key=[A key that its record has, of a file that is not looked into, for those that the run requires]:KEY:{_thalia_offer }'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:RUN:{_thalia_offer @folder}'
        '2:FILE:{_thalia_offer @file}'
      )
      ;;
    'store list')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--phase)--phase=[This phase alone]:P:{_thalia_offer @phase\:1}'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '1:RUN:{_thalia_offer @folder}'
      )
      ;;
    'store watch')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--phase)--phase=[This phase alone]:P:{_thalia_offer @phase\:1}'
        '(--interval)--interval=[How often to look]:SECONDS:{_thalia_offer }'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '1:RUN:{_thalia_offer @folder}'
      )
      ;;
    'store latest')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--phase)--phase=[Of this phase]:P:{_thalia_offer @phase\:1}'
        '(--best)--best[The best one instead, and no other]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:RUN:{_thalia_offer @folder}'
      )
      ;;
    'store restore')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--phase)--phase=[Of this phase]:P:{_thalia_offer @phase\:1}'
        '(--step)--step=[That of this step, and no other]:N:{_thalia_offer }'
        '(--gate)--gate=[This gate instead]:NAME:{_thalia_offer @gate\:1}'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:RUN:{_thalia_offer @folder}'
        '2:OUT:{_thalia_offer @file}'
      )
      ;;
    'store verify')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--phase)--phase=[This phase alone, without gates and pool]:P:{_thalia_offer @phase\:1}'
        '(--quick)--quick[Names, links and texts only\: no checkpoint is read]'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:RUN:{_thalia_offer @folder}'
      )
      ;;
    'store doctor')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--phase)--phase=[This phase alone, without gates and pool]:P:{_thalia_offer @phase\:1}'
        '(--quick)--quick[Names, links and texts only\: no checkpoint is read]'
        '(--fix)--fix[Repair what can be repaired]'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:RUN:{_thalia_offer @folder}'
      )
      ;;
    'store prune')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--phase)--phase=[This phase alone]:P:{_thalia_offer @phase\:1}'
        '(--dry-run)--dry-run[Say what would be done, and change nothing]'
        '(--keep)--keep=[Keep the N newest]:N:{_thalia_offer }'
        '(--every-steps)--every-steps=[Keep those whose step is a multiple of N]:N:{_thalia_offer }'
        '(--every)--every=[Keep the first one saved in each such span\: 30min, 12h, 7d]:DURATION:{_thalia_offer }'
        '(--keep-best)--keep-best=[Keep the K with the best metrics]:K:{_thalia_offer }'
        '(--max-age)--max-age=[Remove what is older]:DURATION:{_thalia_offer }'
        '(--max-bytes)--max-bytes=[Remove the oldest until the others fit into this, as 20GiB]:SIZE:{_thalia_offer }'
        '(--squash)--squash[A delta that stays becomes a full file, rather than keep what it is based on]'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:RUN:{_thalia_offer @folder}'
      )
      ;;
    'store promote')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--phase)--phase=[Of this phase]:P:{_thalia_offer @phase\:1}'
        '(--step)--step=[That of this step]:N:{_thalia_offer }'
        '(--gate)--gate=[Under this name]:NAME:{_thalia_offer @gate\:1}'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:RUN:{_thalia_offer @folder}'
      )
      ;;
    'store pool')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--phase)--phase=[Of add\: its phase]:P:{_thalia_offer @phase\:1}'
        '(--step)--step=[Of add\: the checkpoint'\''s step]:N:{_thalia_offer }'
        '(--mu)--mu=[The estimate of the model'\''s skill, as OpenSkill has it]:X:{_thalia_offer }'
        '(--sigma)--sigma=[How uncertain that is]:X:{_thalia_offer }'
        '(--games)--games=[Of rate\: games that it has played]:N:{_thalia_offer }'
        '(--win-rate)--win-rate=[Of rate\: the share that it won, 0 to 1]:X:{_thalia_offer }'
        '(--seed)--seed=[Of draw\: the run'\''s seed]:S:{_thalia_offer }'
        '(--index)--index=[Of draw\: the number of the game]:I:{_thalia_offer }'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:RUN:{_thalia_offer @folder}'
        '2:ACTION:{_thalia_offer list add rate draw}'
        '3:VERSION:{_thalia_offer }'
      )
      ;;
    'store transition')
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--seed)--seed=[The run'\''s seed, of which that of the phase is made]:S:{_thalia_offer }'
        '(--wait)--wait[Wait for the process that changes the file, or the run, now]'
        '(--force)--force[Replace a file that is there already, in one step]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '(--safe)--safe[Copy what is read, and map nothing\: for files that others change meanwhile, and disks that fail]'
        '(--max-memory)--max-memory=[What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than fits its own size and this machine]:SIZE:{_thalia_offer }'
        '1:RUN:{_thalia_offer @folder}'
        '2:FROM:{_thalia_offer @phase\:1}'
        '3:TO:{_thalia_offer @phase\:1}'
      )
      ;;
    bench)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--dir)--dir=[The folder to try, on the disk in question (default .)]:D:{_thalia_offer @folder}'
        '(--size)--size=[Bytes to save, as 512MiB or 4GiB (default 1GiB)]:N:{_thalia_offer 256MiB 1GiB 4GiB}'
        '(--rounds)--rounds=[Runs of each (default 3)]:N:{_thalia_offer }'
        '(--threads)--threads=[Threads that do the work]:N:{_thalia_offer }'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
      )
      ;;
    version)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
      )
      ;;
    help)
      specs=(
        '(-h --help)-h[Print this and leave]'
        '(-h --help)--help[Print this and leave]'
        '(--json)--json[Print a JSON value, always complete\: sizes in bytes, times in seconds, names as they are]'
        '(--color)--color=[auto, always or never]:WHEN:{_thalia_offer auto always never}'
        '(--no-pager)--no-pager[Print what is longer than the screen without $THALIA_PAGER, $PAGER or less]'
        '1:COMMAND:{_thalia_offer info ls cat stats verify convert migrate extract merge diff log grow set rename rm append compact recover salvage compress decompress delta resolve quantize prune plot report store bench version help}'
        '2:WORD:{_thalia_offer init save list watch latest restore verify doctor prune promote pool transition}'
      )
      ;;
  esac
}
# } made by tools/documents.py

# Offers what the words given are or stand for. An argument that they are of is in $line.
_thalia_offer() {
  local offer file found=1
  local -a names
  for offer; do
    case $offer in
      @file) _files && found=0 ;;
      @folder) _files -/ && found=0 ;;
      @*)
        file=${(Q)line[${offer##*:}]}
        file=${file/#\~\//$HOME/}
        offer=${offer#@}
        names=(${(f)"$(thalia __complete ${offer%:*} "$file" "${(Q)PREFIX}" 2>/dev/null)"})
        compadd -a names && found=0
        ;;
      *) compadd -- $offer && found=0 ;;
    esac
  done
  return found
}

_thalia() {
  local curcontext=$curcontext state
  local -a line specs
  typeset -A opt_args
  if ((CURRENT == 2)); then
    _describe -t commands command _thalia_commands
    [[ $PREFIX == -* ]] && compadd -- --help --version
    return
  fi
  # The last word of the command's name is the first one of what is left.
  ((CURRENT > 3)) && _thalia_specs "$words[2] $words[3]"
  if (($#specs)); then
    shift 2 words
    ((CURRENT -= 2))
  else
    _thalia_specs $words[2]
    shift words
    ((CURRENT--))
  fi
  _arguments -S $specs
}

_thalia "$@"
