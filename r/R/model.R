# mm(): a formula and data frames to a finished run.

mm <- function(formula, data, pedigree = NULL, genotypes = NULL, family = "normal", weights = NULL,
               reml = FALSE, method = NULL, chains = NULL, burn_in = NULL, samples = NULL, thin = NULL, seed = 1,
               threads = NULL, engine = NULL, device = NULL, variances = NULL, settings = list(),
               directory = NULL, overwrite = FALSE, report = FALSE, progress = interactive()) {
  folder <- choose_folder(directory, overwrite)
  tables <- paste0(folder, "-tables")
  is_finished <- FALSE
  if (is.null(directory)) on.exit(if (!is_finished) unlink(c(folder, tables), recursive = TRUE))
  dir.create(tables, recursive = TRUE, showWarnings = FALSE)
  analysis <- file.path(tables, "model.yaml")
  arguments <- c(
    "init", table_path(data, file.path(tables, frame_file("data")), "data"),
    "--formula", formula_text(formula, data), "--no-check", "--overwrite", "--output", analysis
  )
  if (!is.null(pedigree)) {
    arguments <- c(arguments, "--pedigree", table_path(pedigree, file.path(tables, frame_file("pedigree")), "pedigree"))
  }
  if (!is.null(genotypes)) {
    arguments <- c(arguments, "--genotypes", genotypes_path(genotypes, file.path(tables, frame_file("genotypes"))))
  }
  if (!is.null(weights)) arguments <- c(arguments, "--weights", weights)
  arguments <- c(arguments, "--family", family_text(family))
  notes <- notes_of(run_program(arguments))
  show_notes(notes)
  if (isTRUE(reml)) {
    if (!is.null(method) && !identical(method, "reml")) refuse("reml = TRUE cannot be combined with method = \"", method, "\"")
    method <- "reml"
  }
  if (is.null(seed)) seed <- sample.int(.Machine$integer.max, 1)
  sampler <- list(
    method = method, chains = chains, burn_in = burn_in, samples = samples, thin = thin, seed = seed, threads = threads,
    engine = engine, device = device
  )
  sampler <- sampler[!vapply(sampler, is.null, logical(1))]
  has_snp_effects <- any(grepl("^ *markers:", readLines(analysis, encoding = "UTF-8")))
  if (!"output.fitted" %in% names(settings) && !has_snp_effects) settings <- c(settings, list(output.fitted = TRUE))
  set <- c(list(sampler = sampler), if (!is.null(variances)) list(variances = variances), settings)
  fit <- run_analysis(
    analysis, set, directory = folder, overwrite = overwrite, report = report, progress = progress, notes = notes
  )
  is_finished <- TRUE
  fit$call <- match.call()
  # text may be a formula of the program that R cannot parse
  fit$formula <- if (inherits(formula, "formula")) formula else tryCatch(stats::as.formula(formula), error = function(e) formula)
  fit
}

run_analysis <- function(file, settings = list(), directory = NULL, overwrite = FALSE, report = FALSE,
                         progress = interactive(), notes = character()) {
  folder <- choose_folder(directory, overwrite)
  if (!"output.csv" %in% names(settings)) settings <- c(settings, list(output.csv = "always"))
  arguments <- c(
    "run", path.expand(file), "--output", folder, setting_arguments(settings),
    if (overwrite) "--overwrite", if (!report) "--no-report", if (!progress) "--quiet"
  )
  said <- run_program(arguments, progress)
  fit <- open_run(folder)
  fit$call <- match.call()
  of_run <- setdiff(c(fit$notes, notes_of(said)), notes)
  show_notes(of_run, progress)
  fit$notes <- unique(c(notes, of_run))
  fit$warnings <- unique(c(warnings_of(said), fit$warnings))
  show_warnings(fit$warnings)
  fit
}

# The run folder: a temporary one, or one that is not there yet unless it may be replaced.
choose_folder <- function(directory, overwrite) {
  if (is.null(directory)) return(tempfile("mmgibbs-"))
  folder <- path.expand(directory)
  if (file.exists(file.path(folder, "run.json")) && !overwrite) {
    refuse("directory: '", folder, "' has a finished run; choose another folder, or give overwrite = TRUE")
  }
  folder
}

# The path of a table that is a file, or that is written here.
table_path <- function(table, path, what) {
  if (!is.character(table)) return(write_records(table, path, what))
  if (length(table) != 1 || !file.exists(table)) refuse(what, ": there is no file '", paste(table, collapse = ", "), "'")
  normalizePath(table)
}

# Genotypes: a file, or a matrix of 0, 1, 2 copies with the ids of the animals as row names.
genotypes_path <- function(genotypes, path) {
  if (is.character(genotypes) && is.null(dim(genotypes))) return(table_path(genotypes, path, "genotypes"))
  if (is.matrix(genotypes)) {
    if (is.null(rownames(genotypes))) refuse("genotypes: expected a matrix with the ids of the animals as row names, got none")
    snps <- colnames(genotypes)
    if (is.null(snps)) snps <- paste0("snp", seq_len(ncol(genotypes)))
    genotypes <- setNames(data.frame(rownames(genotypes), genotypes, stringsAsFactors = FALSE), c("id", snps))
  }
  write_records(genotypes, path, "genotypes")
}
