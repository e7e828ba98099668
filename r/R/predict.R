# Breeding values of animals of the run, or of new ones with genotypes.

predict.mmgibbs <- function(object, newdata = NULL, genotypes = NULL, term = NULL, trait = NULL, ...) {
  if (!is.null(genotypes)) return(predict_genomic(object, genotypes))
  rows <- breeding_values(object, term, trait)
  if (is.null(newdata)) return(rows)
  ids <- as.character(if (is.data.frame(newdata)) newdata[[1]] else newdata)
  unknown <- setdiff(ids, rows$level)
  if (length(unknown)) {
    refuse("predict: the run has no level '", unknown[[1]], "'; for animals with genotypes alone give genotypes = FILE")
  }
  components <- unique(rows[c("term", "effect", "trait")])
  parts <- lapply(seq_len(nrow(components)), function(i) {
    of_component <- rows[rows$term == components$term[i] & rows$effect == components$effect[i] & rows$trait == components$trait[i], ]
    of_component[match(ids, of_component$level), , drop = FALSE]
  })
  out <- do.call(rbind, parts)
  out <- out[!is.na(out$term), , drop = FALSE]
  rownames(out) <- NULL
  out
}

predict_genomic <- function(fit, genotypes) {
  folder <- tempfile("mmgibbs-predict-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  output <- file.path(folder, "gebv.csv")
  run_command(c("predict", fit$directory, genotypes_path(genotypes, file.path(folder, "genotypes.csv")), "--output", output))
  read_table(output)
}
