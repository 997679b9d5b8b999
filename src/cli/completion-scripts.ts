// The completion scripts of bash, zsh and fish. All three find the verb in the words before the cursor. Then they
// complete a value, a flag, a verb or an argument from the table in the script. The bash script runs on bash 3.2, the
// version of macOS: no mapfile, and compopt only where available.

import type {
  CompletedCommand,
  CompletedFlag,
  CompletedWord,
  CompletionTable,
  ValueKind,
} from "./completion-table.ts";

export const completedShells = ["bash", "zsh", "fish"] as const;
export type CompletedShell = (typeof completedShells)[number];

/** A script to source in `shell`. @param names commands that the script completes */
export function completionScript(
  shell: CompletedShell,
  table: CompletionTable,
  names: readonly string[],
): string {
  switch (shell) {
    case "bash":
      return `${posixTables(table)}${bashFunction}\ncomplete -F _waggle ${names.join(" ")}\n`;
    case "zsh":
      return `#compdef ${names.join(" ")}\n${posixTables(table)}${zshFunction(names)}`;
    case "fish":
      return `${fishTables(table)}${fishFunction(names)}`;
  }
}

// --- the table, as functions of the shell ----------------------------------------------------------

/** Patterns of a lookup, and the lines that match. */
type Rows = readonly (readonly [pattern: readonly string[], lines: readonly string[]])[];

/** `word:description` of each verb that can follow a path. */
function verbRows({ commands }: CompletionTable): Rows {
  return commands
    .filter(({ verbs }) => verbs.length > 0)
    .map(({ path, verbs }) => [[path], verbs.map(wordLine)] as const);
}

function flagRows({ commands }: CompletionTable): Rows {
  return commands
    .filter(({ flags }) => flags.length > 0)
    .map(({ path, flags }) => [[path], flags.map(wordLine)] as const);
}

/** The value that a flag takes, by path and flag; for global flags by the flag alone. */
function valueRows({ commands, globalFlags }: CompletionTable): Rows {
  const rows = (path: string, flags: readonly CompletedFlag[]): Rows =>
    flags.flatMap(({ word, short, value }) => {
      if (value === undefined) return [];
      const spellings = [word, ...(short === undefined ? [] : [short])];
      return [[spellings.map((flag) => `${path} ${flag}`.trim()), [valueLine(value)]] as const];
    });
  return [...commands.flatMap(({ path, flags }) => rows(path, flags)), ...rows("", globalFlags)];
}

/** The argument at a position, by path and position. `*` stands for the last argument and all further words. */
function argumentRows({ commands }: CompletionTable): Rows {
  const rows = ({ path, arguments: all }: CompletedCommand): Rows =>
    all.map(
      ({ value, isVariadic }, at) => [[`${path} ${isVariadic ? "*" : at}`], [valueLine(value)]] as const,
    );
  return commands.flatMap(rows);
}

function wordLine({ word, description }: CompletedWord): string {
  return `${word}:${description}`;
}

function valueLine(value: ValueKind): string {
  return typeof value === "string" ? value : ["choices", ...value.choices].join(" ");
}

function posixTables(table: CompletionTable): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const pattern = (text: string) => (text.endsWith(" *") ? `${quoted(text.slice(0, -1))}*` : quoted(text));
  const body = (rows: Rows) =>
    rows
      .map(
        ([keys, lines]) =>
          `    ${keys.map(pattern).join("|")}) printf '%s\\n' ${lines.map(quoted).join(" ")};;\n`,
      )
      .join("");
  const tableFunction = (name: string, rows: Rows) => `${name}() {\n  case "$1" in\n${body(rows)}  esac\n}\n`;
  return [
    tableFunction("_waggle_verbs", verbRows(table)),
    tableFunction("_waggle_flags", flagRows(table)),
    tableFunction("_waggle_value", valueRows(table)),
    tableFunction("_waggle_argument", argumentRows(table)),
    `_waggle_global_flags() {\n  printf '%s\\n' ${globalFlags(table).map(wordLine).map(quoted).join(" ")}\n}\n`,
  ].join("");
}

function fishTables(table: CompletionTable): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, "\\$&")}'`;
  const body = (rows: Rows) =>
    rows
      .map(
        ([keys, lines]) =>
          `    case ${keys.map(quoted).join(" ")}\n      printf '%s\\n' ${lines.map(quoted).join(" ")}\n`,
      )
      .join("");
  const tableFunction = (name: string, rows: Rows) =>
    `function ${name}\n  switch "$argv[1]"\n${body(rows)}  end\nend\n`;
  return [
    tableFunction("__waggle_verbs", verbRows(table)),
    tableFunction("__waggle_flags", flagRows(table)),
    tableFunction("__waggle_value", valueRows(table)),
    tableFunction("__waggle_argument", argumentRows(table)),
    `function __waggle_global_flags\n  printf '%s\\n' ${globalFlags(table).map(wordLine).map(quoted).join(" ")}\nend\n`,
  ].join("");
}

function globalFlags({ globalFlags: flags }: CompletionTable): readonly CompletedWord[] {
  return [...flags, { word: "--help", description: "print help" }];
}

// --- the steps, in each shell -----------------------------------------------------------------------

/** Finds `verb` (the path), `position` (of the argument at the cursor) and `expects` (what the value at the cursor
 *  is) in the words before the cursor. The same text does in bash and zsh. */
const posixWalk = `  for word in "$@"; do
    if [[ -n $expects ]]; then expects=; continue; fi
    case "$word" in
      --*=*) continue;;
      -?*)
        expects=$(_waggle_value "$verb $word")
        [[ -n $expects ]] || expects=$(_waggle_value "$word")
        continue;;
    esac
    case $'\\n'"$(_waggle_verbs "$verb")" in
      *$'\\n'"$word:"*) verb="\${verb:+$verb }$word";;
      *) position=$((position + 1));;
    esac
  done
`;

const bashFunction = `_waggle() {
  local line=$COMP_LINE verb= position=0 expects= word part cur prefix= i n=-1
  local -a words
  # Readline breaks words at = : and @ as well: put together again what no space parts.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    part=\${COMP_WORDS[i]}
    if ((i > 0)) && [[ -n $part && $line != [[:space:]]* ]]; then
      words[n]+=$part
    else
      n=$((n + 1)); words[n]=$part
    fi
    line=\${line#"\${line%%[![:space:]]*}"}
    line=\${line#"$part"}
  done
  cur=\${words[n]}
  # Readline replaces what it gave as $2, and leaves what it broke off before that.
  [[ $cur == *"$2" ]] && prefix=\${cur%"$2"}
  set -- "\${words[@]:1:n-1}"
${posixWalk}  COMPREPLY=()
  if [[ -z $expects && $cur == --*=* ]]; then
    expects=$(_waggle_value "$verb \${cur%%=*}")
    [[ -n $expects ]] || expects=$(_waggle_value "\${cur%%=*}")
    cur=\${cur#*=}
    [[ $prefix == --*=* ]] && prefix=\${prefix#*=}
  elif [[ -z $expects && $cur == -?* ]]; then
    expects=flags
  elif [[ -z $expects ]]; then
    expects=$(_waggle_argument "$verb $position")
    [[ -n $(_waggle_verbs "$verb") ]] && expects=verbs
    [[ -n $expects ]] || expects=flags
  fi
  [[ $cur == @* ]] && expects=source
  local IFS=$'\\n'
  case "$expects" in
    verbs) COMPREPLY=($(_waggle_verbs "$verb" | cut -d: -f1));;
    flags) COMPREPLY=($({ _waggle_flags "$verb"; _waggle_global_flags; } | cut -d: -f1));;
    choices*) COMPREPLY=($(printf '%s\\n' "\${expects#choices }" | tr ' ' '\\n'));;
    file) COMPREPLY=($(compgen -f -- "$cur"));;
    folder) COMPREPLY=($(compgen -d -- "$cur"));;
    source) COMPREPLY=($(compgen -f -P @ -- "\${cur#@}"));;
  esac
  local -a found=()
  for word in "\${COMPREPLY[@]}"; do
    [[ $word == "$cur"* ]] && found+=("\${word#"$prefix"}")
  done
  COMPREPLY=("\${found[@]}")
  case "$expects" in
    file|folder|source) type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null;;
  esac
  return 0
}`;

function zshFunction(names: readonly string[]): string {
  return `_waggle() {
  local verb= position=0 expects= word cur=\${words[CURRENT]}
  local -a lines
  set -- "\${(@)words[2,CURRENT-1]}"
${posixWalk}  if [[ -z $expects && $cur == --*=* ]]; then
    expects=$(_waggle_value "$verb \${cur%%=*}")
    [[ -n $expects ]] || expects=$(_waggle_value "\${cur%%=*}")
    compset -P '*='
    cur=\${cur#*=}
  elif [[ -z $expects && $cur == -?* ]]; then
    expects=flags
  elif [[ -z $expects ]]; then
    expects=$(_waggle_argument "$verb $position")
    [[ -n $(_waggle_verbs "$verb") ]] && expects=verbs
    [[ -n $expects ]] || expects=flags
  fi
  [[ $cur == @* ]] && expects=source
  case "$expects" in
    verbs) lines=("\${(@f)$(_waggle_verbs "$verb")}"); _describe verb lines;;
    flags) lines=("\${(@f)$(_waggle_flags "$verb"; _waggle_global_flags)}"); lines=(\${lines:#}); _describe flag lines;;
    choices*) compadd -- \${=expects#choices };;
    file) _files;;
    folder) _files -/;;
    source) if compset -P @; then _files; else _files -P @; fi;;
  esac
}
if [[ $funcstack[1] == _waggle ]]; then
  _waggle "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i; }
  compdef _waggle ${names.join(" ")}
fi
`;
}

function fishFunction(names: readonly string[]): string {
  return `function __waggle_complete
  set -l verb ''
  set -l position 0
  set -l expects ''
  set -l cur (commandline -ct)
  set -l words (commandline -opc)
  for word in $words[2..-1]
    if test -n "$expects"
      set expects ''
      continue
    end
    if string match -q -- '--*=*' $word
      continue
    end
    if string match -q -- '-?*' $word
      set expects (__waggle_value "$verb $word"; __waggle_value "$word")[1]
      continue
    end
    if __waggle_verbs "$verb" | string match -q -- "$word:*"
      set verb (string trim "$verb $word")
    else
      set position (math $position + 1)
    end
  end
  set -l before ''
  if test -z "$expects"
    if string match -q -- '--*=*' $cur
      set -l parts (string split -m 1 = -- $cur)
      set expects (__waggle_value "$verb $parts[1]"; __waggle_value "$parts[1]")[1]
      set before "$parts[1]="
      set cur $parts[2]
    else if string match -q -- '-*' $cur
      set expects flags
    else if test -n "$(__waggle_verbs "$verb")"
      set expects verbs
    else
      set expects (__waggle_argument "$verb $position")[1]
      test -n "$expects"; or set expects flags
    end
  end
  if string match -q -- '@*' $cur
    set expects source
  end
  switch "$expects"
    case verbs
      __waggle_verbs "$verb" | string replace : \\t
    case flags
      begin; __waggle_flags "$verb"; __waggle_global_flags; end | string replace : \\t
    case 'choices *'
      printf '%s\\n' "$before"(string split ' ' -- (string replace 'choices ' '' -- $expects))
    case file
      printf '%s\\n' "$before"(__fish_complete_path "$cur")
    case folder
      printf '%s\\n' "$before"(__fish_complete_directories "$cur" '')
    case source
      printf '%s\\n' "$before@"(__fish_complete_path (string replace -r '^@' '' -- "$cur"))
  end
end
${names.map((name) => `complete -c ${name} -f -a '(__waggle_complete)'\n`).join("")}`;
}
