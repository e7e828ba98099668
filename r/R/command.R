# The program mmgibbs: where it is, and how it is started.

# The path of the program: an option, an installation of install_mmgibbs(), or the search path.
find_command <- function() {
  given <- getOption("mmgibbs.command")
  if (!is.null(given)) {
    if (!nzchar(Sys.which(given)) && !file.exists(given)) {
      refuse("options(mmgibbs.command = \"", given, "\"): there is no such file; expected the path of the program mmgibbs")
    }
    return(given)
  }
  on_path <- unname(Sys.which("mmgibbs"))
  candidates <- c(program_of_environment(environment_folder(), "mmgibbs"), on_path)
  candidates <- candidates[file.exists(candidates)]
  if (!length(candidates)) {
    refuse(
      "the program mmgibbs is not installed. Install it with install_mmgibbs(), or from a terminal with ",
      "pip install \"mmgibbs[formula]\"; if it is installed elsewhere, write options(mmgibbs.command = \"PATH\")"
    )
  }
  candidates[[1]]
}

environment_folder <- function() file.path(tools::R_user_dir("mmgibbs", "data"), "python")

program_of_environment <- function(folder, name) {
  if (.Platform$OS.type == "windows") file.path(folder, "Scripts", paste0(name, ".exe")) else file.path(folder, "bin", name)
}

# package: the folder of the sources, a wheel, or what pip finds by its name.
install_mmgibbs <- function(package = "mmgibbs", python = NULL, folder = environment_folder()) {
  if (is.null(python)) {
    known <- Sys.which(c("python3", "python"))
    known <- known[nzchar(known)]
    if (!length(known)) refuse("Python was not found; install Python 3.11 or later, or give its path as python = \"PATH\"")
    python <- known[[1]]
  }
  if (!nzchar(Sys.which(python))) refuse("'", python, "' was not found; expected the path of Python 3.11 or later: python = \"PATH\"")
  question <- shQuote("import sys; print(sys.version_info >= (3, 11))")
  version <- suppressWarnings(system2(python, c("-c", question), stdout = TRUE, stderr = FALSE))
  if (!identical(version, "True")) refuse("'", python, "': expected Python 3.11 or later; give its path as python = \"PATH\"")
  dir.create(dirname(folder), recursive = TRUE, showWarnings = FALSE)
  is_file <- file.exists(file.path(package, "pyproject.toml")) || grepl("[.]whl$", package)
  if (is_file) package <- normalizePath(package)
  if (!grepl("]", package, fixed = TRUE)) package <- paste0(package, "[formula]")
  steps <- list(
    c(python, "-m", "venv", folder),
    c(program_of_environment(folder, "python"), "-m", "pip", "install", "--upgrade", package)
  )
  for (step in steps) {
    output <- start(step[[1]], step[-1], progress = interactive())
    if (output$status != 0) {
      advice <- if (!is_file) "\nto install from the sources or a wheel, write install_mmgibbs(\"PATH\")"
      refuse("could not install mmgibbs: ", paste(step, collapse = " "), " failed\n", paste(tail(output$lines, 5), collapse = "\n"), advice)
    }
  }
  command <- program_of_environment(folder, "mmgibbs")
  message("installed: ", command)
  invisible(command)
}

run_command <- function(arguments, progress = FALSE) {
  lines <- run_program(arguments, progress)
  show_notes(notes_of(lines), progress)
  show_warnings(warnings_of(lines))
  invisible(lines)
}

# The lines that the program prints; an error of its own is one of R.
run_program <- function(arguments, progress = FALSE) {
  output <- start(find_command(), as.character(arguments), progress)
  output$lines <- with_rows_of_r(output$lines)
  if (output$status != 0) {
    show_notes(notes_of(output$lines), progress)
    stop(error_of_program(output$lines, output$status))
  }
  output$lines
}

# Notes, and pages that are not written because a library is missing.
notes_of <- function(lines) {
  sub("^note: ", "", grep("^(note: |no [^ :]+: found no )", lines, value = TRUE))
}

warnings_of <- function(lines) sub("^warning: ", "", grep("^warning: ", lines, value = TRUE))

# Messages of R; what progress has shown is not shown twice.
show_notes <- function(notes, is_shown = FALSE) {
  if (!is_shown) for (text in unique(notes)) message("note: ", text)
}

show_warnings <- function(warnings) for (text in unique(warnings)) warning(text, call. = FALSE)

# Start a program and wait for it: its lines of both streams, and its exit status.
start <- function(command, arguments, progress = FALSE) {
  if (.Platform$OS.type == "windows") {
    lines <- suppressWarnings(system2(command, shQuote(arguments), stdout = TRUE, stderr = TRUE))
    status <- attr(lines, "status")
    if (progress) message(paste(lines, collapse = "\n"))
    return(list(lines = as_utf8(as.vector(lines)), status = if (is.null(status)) 0L else status))
  }
  process <- pipe(paste(c(libraries_outside_r(), "exec", shQuote(c(command, arguments)), "2>&1"), collapse = " "), open = "r")
  is_open <- TRUE
  on.exit(if (is_open) close(process))
  lines <- character()
  while (length(line <- readLines(process, n = 1, warn = FALSE))) {
    line <- as_utf8(line)
    lines[[length(lines) + 1]] <- line
    if (progress) message(line)
  }
  status <- close(process)
  is_open <- FALSE
  list(lines = lines, status = exit_status(status))
}

# Shell text that takes the folders which R has put into the library path out of it: the Python of the program would
# load its own library from them, and that of the system may be of another version.
libraries_outside_r <- function() {
  path <- strsplit(Sys.getenv("LD_LIBRARY_PATH"), ":", fixed = TRUE)[[1]]
  path <- path[nzchar(path)]
  rest <- path[!path %in% libraries_of_r()]
  if (length(rest) == length(path)) return(NULL)
  if (!length(rest)) return("unset LD_LIBRARY_PATH;")
  paste0("LD_LIBRARY_PATH=", shQuote(paste(rest, collapse = ":")), "; export LD_LIBRARY_PATH;")
}

# The folders that the start of R puts into the library path.
libraries_of_r <- function() {
  script <- file.path(R.home("etc"), "ldpaths")
  if (!file.exists(script)) return(R.home("lib"))
  text <- paste(".", shQuote(script), "; printf %s \"$R_LD_LIBRARY_PATH\"")
  strsplit(paste(system2("sh", c("-c", shQuote(text)), stdout = TRUE), collapse = ""), ":", fixed = TRUE)[[1]]
}

# The exit status of close(): that of wait(), with the code in the second byte; nothing where it is 0.
exit_status <- function(status) {
  if (is.null(status)) return(0L)
  if (status >= 256) as.integer(status %/% 256) else as.integer(status)
}

as_utf8 <- function(text) {
  Encoding(text) <- "UTF-8"
  text
}

# An error with the message of the program, which says what is wrong, where, and what to do.
error_of_program <- function(lines, status) {
  said <- lines[!grepl("^(warning|note): ", lines)]
  traceback <- grep("^Traceback ", said)
  if (length(traceback)) {
    file <- tempfile("mmgibbs-", fileext = ".txt")
    writeLines(said, file, useBytes = TRUE)
    said <- c(tail(said, 2), paste("All lines are in", file))
  }
  text <- paste(said[nzchar(said)], collapse = "\n")
  if (!nzchar(text)) text <- paste("mmgibbs ended with status", status)
  structure(class = c("mmgibbs_error", "error", "condition"), list(message = text, call = NULL, status = status))
}

refuse <- function(...) {
  stop(structure(class = c("mmgibbs_error", "error", "condition"), list(message = paste0(...), call = NULL, status = NA_integer_)))
}
