# Draws of the parameters, for R and for the packages coda and posterior.

draws <- function(fit, parameters = NULL) {
  folder <- tempfile("mmgibbs-draws-")
  on.exit(unlink(folder, recursive = TRUE))
  run_command(c("export", "--format", "draws", fit$directory, "--output", folder))
  table <- read_table(file.path(folder, "draws.csv"))
  names <- setdiff(names(table), c("chain", "draw"))
  if (!is.null(parameters)) {
    chosen <- unique(unlist(lapply(parameters, match_names, names = names)))
    names <- names[names %in% chosen]
  }
  n <- max(table$draw)
  chains <- max(table$chain)
  values <- array(
    unlist(table[names], use.names = FALSE), c(n, chains, length(names)),
    dimnames = list(iteration = as.character(seq_len(n)), chain = as.character(seq_len(chains)), variable = names)
  )
  values
}

# Names that a name or a pattern such as "h2[*]" stands for.
match_names <- function(pattern, names) {
  if (pattern %in% names) return(pattern)
  expression <- gsub("([][{}()+.^$|\\\\])", "\\\\\\1", pattern)
  expression <- paste0("^", gsub("?", ".", gsub("*", ".*", expression, fixed = TRUE), fixed = TRUE), "$")
  matches <- grep(expression, names, value = TRUE)
  if (!length(matches)) refuse("draws: there is no parameter '", pattern, "'; there are ", paste(head(names, 12), collapse = ", "))
  matches
}

as.mcmc.list.mmgibbs <- function(x, parameters = NULL, ...) {
  values <- draws(x, parameters)
  sampler <- x$info$analysis$sampler
  thin <- if (is.null(sampler$thin)) 1 else sampler$thin
  start <- if (is.null(sampler$burn_in)) 1 else sampler$burn_in + thin
  chains <- lapply(seq_len(dim(values)[[2]]), function(k) {
    chain <- matrix(values[, k, ], dim(values)[[1]], dim(values)[[3]], dimnames = list(NULL, dimnames(values)[[3]]))
    coda::mcmc(chain, start = start, thin = thin)
  })
  coda::mcmc.list(chains)
}

as_draws_array.mmgibbs <- function(x, ...) posterior::as_draws_array(draws(x, ...))

as_draws.mmgibbs <- function(x, ...) as_draws_array.mmgibbs(x, ...)
