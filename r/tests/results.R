# A whole analysis: needs the program mmgibbs on the search path.
library(mmgibbs)
if (!nzchar(Sys.which("mmgibbs"))) {
  cat("results: skipped, as the program mmgibbs is not on the search path\n")
  quit(save = "no")
}
message_of <- function(expression) tryCatch({expression; ""}, error = conditionMessage)
expect <- function(...) stopifnot(...)
says <- function(expression, text) stopifnot(grepl(text, message_of(expression), fixed = TRUE))

folder <- tempfile("beef-")
run_command(c("simulate", folder, "--animals", "300", "--years", "5", "--seed", "3"))
records <- read.csv(file.path(folder, "phenotypes.csv"), colClasses = c(animal = "character"))
pedigree <- read.csv(file.path(folder, "pedigree.csv"), colClasses = "character")

# REML, from data frames.
reml <- mm(yearling_weight ~ sex + (1 | animal), records, pedigree, reml = TRUE)
expect(inherits(reml, "mmgibbs"), identical(names(variances(reml)), c("parameter", "estimate", "se")))
expect(is.finite(AIC(reml)), attr(logLik(reml), "df") == 2, nobs(reml) == sum(!is.na(records$yearling_weight)))
expect(deparse(formula(reml)) == "yearling_weight ~ sex + (1 | animal)")
expect(identical(names(coef(reml)), c("sex:bull", "sex:heifer")), nrow(breeding_values(reml)) == 300)
expect(!is.unsorted(-breeding_values(reml)$mean), all(solutions(reml, "sex")$term == "sex"))
expect(any(grepl("Method: REML", capture.output(print(reml)))), any(grepl("Fixed effects", capture.output(print(summary(reml))))))
e <- residuals(reml)
known <- !is.na(records$yearling_weight)
expect(isTRUE(all.equal(unname(fitted(reml) + e), records$yearling_weight[known])), abs(sum(e)) < 1e-6)
limits <- confint(reml, "sex:heifer", level = 0.9)
half <- qnorm(0.95) * solutions(reml, "sex")$sd[[2]]
expect(identical(colnames(limits), c("5 %", "95 %")), isTRUE(all.equal(as.vector(limits), coef(reml)[["sex:heifer"]] + c(-half, half))))
latex <- toLatex(reml)
expect(any(grepl("animal.var[yearling\\_weight] &", latex, fixed = TRUE)), length(latex) == nrow(variances(reml)) + 6)
ids <- c(records$animal[[5]], records$animal[[2]])
expect(identical(predict(reml, ids)$level, ids), nrow(predict(reml)) == 300, nrow(as.data.frame(reml)) == 302)
says(predict(reml, "nobody"), "the run has no level 'nobody'")
says(draws(reml), "expected a run with draws (method: gibbs), got one of method reml")
says(solutions(reml, "herd"), "term: there is no term 'herd'; there are sex, animal")
says(run_table(reml, "means"), "the run has no table 'means'; it has ")

text <- mm("yearling_weight ~ sex + (1 | animal) + (1 | iid(dam))", records, file.path(folder, "pedigree.csv"), reml = TRUE)
expect(any(grepl("Model: yearling_weight ~ sex", capture.output(print(text)))), "dam.var[yearling_weight]" %in% variances(text)$parameter)

# Notes are messages: of the formula, and of the run, which here leaves records out.
said <- character()
noted <- withCallingHandlers(
  mm(yearling_weight ~ sex + (1 | iid(contemporary_group)), transform(records, yearling_weight = ifelse(seq_along(sex) < 4, NA, yearling_weight)), reml = TRUE),
  message = function(m) {
    said <<- c(said, trimws(conditionMessage(m)))
    invokeRestart("muffleMessage")
  }
)
expect(any(grepl("^note: .* records left out", said)), identical(said, paste("note:", noted$notes)))
expect(any(grepl("notes?: summary\\(fit\\) shows them", capture.output(print(noted)))))

# Errors are those of the program.
says(mm(yearling_weight ~ sx + (1 | animal), records, pedigree), "no column 'sx'; did you mean 'sex'")
error <- tryCatch(mm(yearling_weight ~ sex + (1 | animal), records, transform(pedigree, sire = animal), reml = TRUE), error = identity)
expect(inherits(error, "mmgibbs_error"), error$status == 2, grepl("data frame 'pedigree' row 1: ", conditionMessage(error), fixed = TRUE))
says(mm(yearling_weight ~ sex, records, seed = "x"), "seed")
says(mm(yearling_weight ~ sex, records, reml = TRUE, method = "blup"), "cannot be combined")

# Sampling, kept in a folder; warnings of the program are warnings of R.
kept <- file.path(tempdir(), "kept")
warned <- character()
fit <- withCallingHandlers(
  mm(
    yearling_weight ~ sex + (1 | animal), records, pedigree, chains = 2, burn_in = 20, samples = 60, thin = 2, seed = 7,
    directory = kept, settings = list(name = "kept")
  ),
  warning = function(w) {
    warned <<- c(warned, conditionMessage(w))
    invokeRestart("muffleWarning")
  }
)
expect(identical(warned, fit$warnings), fit$info$name == "kept")
values <- draws(fit, c("h2[*]", "residual.var[yearling_weight]"))
expect(identical(dim(values), c(30L, 2L, 2L)), all(values > 0))
h2 <- fit$summary[fit$summary$parameter == "h2[yearling_weight]", ]
expect(abs(mean(values[, , "h2[yearling_weight]"]) - h2$mean) < 1e-12)
says(draws(fit, "h3[*]"), "there is no parameter 'h3[*]'")
if (requireNamespace("coda", quietly = TRUE)) {
  chains <- coda::as.mcmc.list(fit)
  expect(coda::nchain(chains) == 2, identical(coda::mcpar(chains[[1]]), c(22, 80, 2)))
  expect(identical(as.vector(chains[[2]][, "h2[yearling_weight]"]), as.vector(draws(fit)[, 2, "h2[yearling_weight]"])))
}
if (requireNamespace("posterior", quietly = TRUE)) expect(posterior::ndraws(posterior::as_draws(fit)) == 60)
if (requireNamespace("nlme", quietly = TRUE)) {
  expect(identical(nlme::fixef(fit), coef(fit)), nrow(nlme::ranef(fit)$animal) == 300)
}
pdf(NULL)
plot(fit)
plot(reml)
invisible(dev.off())
expect(identical(open_run(kept)$solutions, fit$solutions))
says(mm(yearling_weight ~ sex, records, directory = kept), "has a finished run; choose another folder, or give overwrite = TRUE")

# An analysis file, and any other command.
blup <- run_analysis(
  file.path(paste0(kept, "-tables"), "model.yaml"),
  list(sampler = list(method = "blup"), variances = list(animal = 700, residual = 1500))
)
expect(identical(variances(blup)$estimate[1:2], c(700, 1500)), length(run_command("--version")) == 1)
cat("results: done\n")
