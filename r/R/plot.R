# Plots of a fit: the draws of its parameters, or its best breeding values.

plot.mmgibbs <- function(x, parameters = NULL, which = c("auto", "draws", "breeding_values"), top = 30, ...) {
  which <- match.arg(which)
  if (which == "auto") which <- if (was_drawn(x)) "draws" else "breeding_values"
  if (which == "draws") plot_draws(x, parameters, ...) else plot_breeding_values(x, top, ...)
  invisible(x)
}

plot_draws <- function(fit, parameters, ...) {
  values <- draws(fit, parameters)
  shown <- head(dimnames(values)[[3]], 6)
  old <- par(mfrow = c(length(shown), 2), mar = c(2.5, 2.5, 2, 0.5), mgp = c(1.5, 0.5, 0))
  on.exit(par(old))
  colours <- seq_len(dim(values)[[2]])
  for (name in shown) {
    of_parameter <- matrix(values[, , name], dim(values)[[1]])
    matplot(of_parameter, type = "l", lty = 1, col = colours, xlab = "kept draw", ylab = "", main = name, ...)
    curves <- lapply(colours, function(k) density(of_parameter[, k]))
    plot(
      range(vapply(curves, function(d) range(d$x), numeric(2))), c(0, max(vapply(curves, function(d) max(d$y), 0))),
      type = "n", xlab = "", ylab = "density", main = name
    )
    for (k in colours) lines(curves[[k]], col = k)
    abline(v = fit$summary$mean[fit$summary$parameter == name], lty = 2)
  }
  if (dim(values)[[3]] > length(shown)) {
    message(dim(values)[[3]] - length(shown), " more parameters are not shown; name some: plot(fit, \"h2[*]\")")
  }
}

plot_breeding_values <- function(fit, top, ...) {
  rows <- breeding_values(fit)
  rows <- rows[rows$term == rows$term[[1]] & rows$effect == rows$effect[[1]] & rows$trait == rows$trait[[1]], ]
  rows <- head(rows, top)
  at <- rev(seq_len(nrow(rows)))
  half <- ifelse(is.na(rows$sd), 0, 1.96 * rows$sd)
  old <- par(mar = c(4, 7, 2, 1))
  on.exit(par(old))
  plot(
    rows$mean, at, xlim = range(rows$mean - half, rows$mean + half), yaxt = "n", pch = 19, ylab = "",
    xlab = "breeding value with 95 % interval", main = paste(rows$term[[1]], rows$effect[[1]], rows$trait[[1]]), ...
  )
  segments(rows$mean - half, at, rows$mean + half, at)
  axis(2, at, rows$level, las = 1, cex.axis = 0.7)
}
