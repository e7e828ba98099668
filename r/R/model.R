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
    "init", table_path(data, file.path(tables, "records.csv"), "data"),
    "--formula", formula_text(formula, data), "--no-check", "--overwrite", "--output", analysis
  )
  if (!is.null(pedigree)) {
    arguments <- c(arguments, "--pedigree", table_path(pedigree, file.path(tables, "pedigree.csv"), "pedigree"))
  }
  if (!is.null(genotypes)) {
    arguments <- c(arguments, "--genotypes", genotypes_path(genotypes, file.path(tables, "genotypes.csv")))
  }
  if (!is.null(weights)) arguments <- c(arguments, "--weights", weights)
  arguments <- c(arguments, "--family", family_text(family))
  said <- run_command(arguments)
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
  set <- c(list(sampler = sampler), if (!is.null(variances)) list(variances = variances), settings)
  fit <- run_analysis(
    analysis, set, directory = folder, overwrite = overwrite, report = report, progress = progress,
    notes = sub("^note: ", "", grep("^note: ", said, value = TRUE))
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
  said <- run_command(arguments, progress)
  fit <- open_run(folder)
  fit$call <- match.call()
  fit$notes <- unique(c(notes, fit$notes))
  warned <- grep("^warning: ", said, value = TRUE)
  fit$warnings <- unique(c(sub("^warning: ", "", warned), fit$warnings))
  for (text in fit$warnings) warning(text, call. = FALSE)
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

family_text <- function(family) {
  if (is.function(family)) family <- family()
  if (inherits(family, "family")) family <- family$family
  if (is.list(family)) family <- unlist(family)
  if (!is.character(family)) refuse("family: expected a type such as \"binary\", got ", class(family)[[1]])
  if (is.null(names(family))) return(family[[1]])
  paste(names(family), family, sep = "=", collapse = ",")
}

# The formula as text. Columns of text that look like numbers are classes, as in R, and say so.
formula_text <- function(formula, data) {
  if (is.character(formula)) return(paste(formula, collapse = " "))
  if (!inherits(formula, "formula")) refuse("formula: expected y ~ x + (1 | animal), got ", class(formula)[[1]])
  if (length(formula) == 3 && is.data.frame(data)) {
    is_class <- vapply(data, function(x) (is.factor(x) || is.character(x)) && looks_numeric(x), logical(1))
    formula[[3]] <- name_classes(formula[[3]], names(data)[is_class])
  }
  text <- paste(trimws(deparse(formula, width.cutoff = 500L)), collapse = " ")
  gsub("\\b([0-9]+)L\\b", "\\1", text)
}

looks_numeric <- function(x) {
  labels <- if (is.factor(x)) levels(x) else unique(x)
  labels <- labels[!is.na(labels) & !labels %in% c("", "NA")]
  length(labels) > 0 && !anyNA(suppressWarnings(as.numeric(labels)))
}

OPERATORS <- c("+", "-", "*", "/", ":", "^", "(", "%in%")

# Put factor() around the columns of classes that stand in a sum or an interaction, not behind a bar or in a call.
name_classes <- function(expression, classes) {
  if (is.name(expression)) {
    return(if (as.character(expression) %in% classes) call("factor", expression) else expression)
  }
  if (!is.call(expression) || !as.character(expression[[1]])[[1]] %in% OPERATORS) return(expression)
  expression[-1] <- lapply(as.list(expression[-1]), name_classes, classes = classes)
  expression
}

# --set KEY=VALUE for each setting; values are JSON, which is YAML.
setting_arguments <- function(settings) {
  if (length(settings) && (is.null(names(settings)) || any(!nzchar(names(settings))))) {
    refuse("settings: expected a named list such as list(sampler.samples = 2000)")
  }
  unlist(lapply(names(settings), function(key) {
    c("--set", paste0(key, "=", json_text(settings[[key]])))
  }))
}

# A value as JSON, numbers with all their digits: a list with names, or an empty one, is a mapping, a matrix a list of rows.
json_text <- function(x) {
  if (is.null(x)) return("null")
  if (is.matrix(x)) return(json_list(apply(x, 1, function(row) json_list(json_cells(row)))))
  is_mapping <- !is.null(names(x)) || (is.list(x) && !length(x))
  if (is.list(x)) values <- vapply(x, json_text, "") else values <- json_cells(x)
  if (is_mapping) return(paste0("{", paste(json_cells(names(x)), values, sep = ":", collapse = ","), "}"))
  if (length(x) == 1 && !is.list(x)) values else json_list(values)
}

json_list <- function(values) paste0("[", paste(values, collapse = ","), "]")

json_cells <- function(x) {
  if (!length(x)) return(character())
  if (is.logical(x)) return(ifelse(is.na(x), "null", ifelse(x, "true", "false")))
  if (is.numeric(x)) return(ifelse(is.na(x), "null", number_text(as.numeric(x))))
  vapply(enc2utf8(as.character(x)), function(text) as.character(jsonlite::toJSON(text, auto_unbox = TRUE)), "", USE.NAMES = FALSE)
}
