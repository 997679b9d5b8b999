// `waggle completion`: prints the completion script of a shell. The verb reads no settings and sends no requests,
// because shells run it at their start.

import { Argument, Command } from "commander";
import { binNames } from "./command-name.ts";
import { type CompletedShell, completedShells, completionScript } from "./completion-scripts.ts";
import { completionTable } from "./completion-table.ts";
import { Output } from "./output.ts";
import type { Program } from "./verb.ts";

export function completionCommand({ shell }: Program): Command {
  return new Command("completion")
    .description(
      `Prints a script for bash, zsh or fish. Once it is sourced, Tab completes verbs, flags, their values, and file ` +
        `names where a flag takes a file, for the commands ${binNames.join(" and ")}.`,
    )
    .addArgument(new Argument("<shell>", "shell to print the script for").choices(completedShells))
    .addHelpText("after", examples)
    .action(async (name: CompletedShell, _: unknown, command: Command) => {
      const root = command.parent ?? command;
      const output = new Output(shell, { json: false });
      output.raw(completionScript(name, completionTable(root), binNames));
      await output.flushed();
    });
}

const examples = `
To install it, add the line of your shell to its start-up file:
  bash  ~/.bashrc                   eval "$(waggle completion bash)"
  zsh   ~/.zshrc, after compinit    eval "$(waggle completion zsh)"
  fish  ~/.config/fish/config.fish  waggle completion fish | source

Examples:
  $ waggle completion bash > ~/.local/share/bash-completion/completions/waggle
  $ waggle completion fish > ~/.config/fish/completions/waggle.fish
  $ eval "$(waggle completion zsh)"           in this terminal only`;
